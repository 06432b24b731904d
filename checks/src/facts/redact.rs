//! What a recording must not tell: user names, home folders, the machine's name, MAC and public
//! addresses, UUIDs, secrets in the environment. Each is replaced everywhere by the same stand-in,
//! so that the relations between answers stay. A stand-in keeps the length, spaces and letters that
//! are not ASCII, since those break programs and so matter to checks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::answer::decode;

/// Folders whose children are named after users.
const HOMES: [&str; 5] = ["/home/", "/Users/", "\\Users\\", "\\\\Users\\\\", "/var/home/"];
/// Names that are no secret and stand in many answers.
const COMMON: [&str; 22] = [
    "root",
    "user",
    "users",
    "admin",
    "Public",
    "Default",
    "default",
    "runner",
    "ubuntu",
    "debian",
    "fedora",
    "arch",
    "linux",
    "windows",
    "microsoft",
    "docker",
    "localhost",
    "nobody",
    "yolo",
    "nvidia",
    "data",
    "home",
];

/// Stand-ins, found in one recording.
#[derive(Debug, Default)]
pub(super) struct Redaction {
    /// Words to replace, longest first.
    words: Vec<(String, String)>,
    /// Public addresses of this machine and of those that it named.
    addresses: BTreeSet<IpAddr>,
}

impl Redaction {
    /// Finds what to hide in a recording.
    pub(super) fn of(recording: &Value) -> Self {
        let mut names = BTreeSet::new();
        for name in [&recording["user"]["name"], &recording["hostname"], &recording["env"]["USER"]] {
            names.extend(name.as_str().map(ToOwned::to_owned));
        }
        names.extend(recording["env"]["WSL_HOST_NAME"].as_str().map(ToOwned::to_owned));
        visit(recording, &mut |text| names.extend(users_of_paths(text)));
        let mut words: Vec<(String, String)> = names
            .into_iter()
            .filter(|name| name.chars().count() > 1 && !COMMON.contains(&name.as_str()))
            .map(|name| (mask(&name), name))
            .map(|(masked, name)| (name, masked))
            .collect();
        words.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let mut addresses = BTreeSet::new();
        for section in ["interfaces", "names", "listening"] {
            visit(&recording[section], &mut |text| {
                let address = text.split('/').next().unwrap_or(text);
                addresses.extend(address.parse::<IpAddr>().ok().filter(|&address| is_public(address)));
            });
        }
        Self { words, addresses }
    }

    /// The same answers with stand-ins.
    pub(super) fn apply(&self, value: &Value) -> Value {
        let mut numbers = Numbers::default();
        self.walk(value, &mut numbers)
    }

    fn walk(&self, value: &Value, numbers: &mut Numbers) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text, numbers)),
            Value::Array(items) => items.iter().map(|item| self.walk(item, numbers)).collect(),
            Value::Object(map) => {
                if let Some(Value::String(encoded)) = map.get("base64") {
                    return self.encoded(encoded, numbers);
                }
                let entry = |(name, item): (&String, &Value)| {
                    let hidden = is_secret(name) && item.is_string();
                    let item = if hidden { Value::from("<hidden>") } else { self.walk(item, numbers) };
                    (self.text(name, numbers), item)
                };
                Value::Object(map.iter().map(entry).collect())
            }
            other => other.clone(),
        }
    }

    /// UTF-16 text is redacted and encoded again; other bytes say nothing that a person wrote.
    fn encoded(&self, encoded: &str, numbers: &mut Numbers) -> Value {
        let bytes = STANDARD.decode(encoded).unwrap_or_default();
        let text = decode(&bytes);
        let redacted = self.text(&text, numbers);
        let kept = if redacted == text {
            bytes
        } else if bytes.starts_with(&[0xFE, 0xFF]) {
            [0xFE, 0xFF].into_iter().chain(redacted.encode_utf16().flat_map(u16::to_be_bytes)).collect()
        } else if bytes.starts_with(&[0xFF, 0xFE]) {
            [0xFF, 0xFE].into_iter().chain(redacted.encode_utf16().flat_map(u16::to_le_bytes)).collect()
        } else if bytes.get(1) == Some(&0) {
            redacted.encode_utf16().flat_map(u16::to_le_bytes).collect()
        } else {
            redacted.into_bytes()
        };
        serde_json::json!({ "base64": STANDARD.encode(kept) })
    }

    fn text(&self, text: &str, numbers: &mut Numbers) -> String {
        let mut text = text.to_owned();
        for (word, stand_in) in &self.words {
            text = replace_words(&text, word, stand_in);
        }
        numbers.replace(&without_credentials(&text), &self.addresses)
    }
}

/// Calls `seen` with every text of a value, also with names of rows.
fn visit(value: &Value, seen: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => seen(text),
        Value::Array(items) => items.iter().for_each(|item| visit(item, seen)),
        Value::Object(map) => {
            if let Some(Value::String(encoded)) = map.get("base64") {
                seen(&decode(&STANDARD.decode(encoded).unwrap_or_default()));
            }
            for (name, item) in map {
                seen(name);
                visit(item, seen);
            }
        }
        _ => {}
    }
}

fn users_of_paths(text: &str) -> Vec<String> {
    let mut users = Vec::new();
    for home in HOMES {
        for (at, _) in text.match_indices(home) {
            let rest = &text[at + home.len()..];
            let end = rest.find(['/', '\\', '\n', '\r', '"', ':', ';', '\'']).unwrap_or(rest.len());
            let name = rest[..end].trim();
            // A path in running text ends at a space; a user name has at most a few words.
            if !name.is_empty() && name.split(' ').count() <= 3 {
                users.push(name.to_owned());
            }
        }
    }
    users
}

/// Letters and digits of ASCII become `x`; all else stays.
fn mask(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { 'x' } else { letter }).collect()
}

/// Replaces a word where it stands alone, not inside a longer one.
fn replace_words(text: &str, word: &str, stand_in: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let mut before = None;
    while let Some(at) = rest.find(word) {
        let after = &rest[at + word.len()..];
        let previous = rest[..at].chars().next_back().or(before);
        result.push_str(&rest[..at]);
        let alone = !inside(previous) && !inside(after.chars().next());
        result.push_str(if alone { stand_in } else { word });
        before = word.chars().next_back();
        rest = after;
    }
    result.push_str(rest);
    result
}

fn is_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY"]
        .iter()
        .any(|word| upper.contains(word))
}

/// `https://name:word@host` without what stands before the `@`.
fn without_credentials(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        result.push_str(head);
        let end = tail.find(['/', ' ', '\n', '"']).unwrap_or(tail.len());
        rest = match tail[..end].rfind('@') {
            Some(mark) => {
                result.push_str("hidden");
                &tail[mark..]
            }
            None => tail,
        };
    }
    result.push_str(rest);
    result
}

/// Numbered stand-ins of addresses and identifiers.
#[derive(Debug, Default)]
struct Numbers {
    uuids: BTreeMap<String, usize>,
    macs: BTreeMap<String, usize>,
    addresses: BTreeMap<String, usize>,
}

impl Numbers {
    /// Replaces UUIDs, MAC addresses and public IP addresses.
    fn replace(&mut self, text: &str, known: &BTreeSet<IpAddr>) -> String {
        let is_part = |letter: char| letter.is_ascii_hexdigit() || matches!(letter, '-' | ':' | '.');
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            result.push_str(&rest[..start]);
            let tail = &rest[start..];
            let end = tail.find(|letter| !is_part(letter)).unwrap_or(tail.len());
            result.push_str(&self.stand_in(&tail[..end], known));
            rest = &tail[end..];
        }
        result.push_str(rest);
        result
    }

    fn stand_in(&mut self, token: &str, known: &BTreeSet<IpAddr>) -> String {
        if let Some(at) = uuid_in(token) {
            let uuid = token[at..at + 36].to_lowercase();
            let number = number_of(&mut self.uuids, uuid);
            let before = &token[..at];
            return format!("{before}00000000-0000-0000-0000-{number:012x}{}", &token[at + 36..]);
        }
        if is_mac(token) {
            let number = number_of(&mut self.macs, token.to_lowercase());
            return format!("02:00:00:00:{:02x}:{:02x}", number / 256 % 256, number % 256);
        }
        let trimmed = token.trim_end_matches(['.', ':', '-']);
        match trimmed.parse::<IpAddr>() {
            Ok(address) if is_public(address) && (known.contains(&address) || !may_be_version(address)) => {
                let number = number_of(&mut self.addresses, address.to_string());
                let ending = &token[trimmed.len()..];
                match address {
                    IpAddr::V4(_) => format!("203.0.113.{}{ending}", number % 256),
                    IpAddr::V6(_) => format!("2001:db8::{number:x}{ending}"),
                }
            }
            _ => token.to_owned(),
        }
    }
}

fn number_of(table: &mut BTreeMap<String, usize>, key: String) -> usize {
    let next = table.len() + 1;
    *table.entry(key).or_insert(next)
}

/// Where a UUID, 8-4-4-4-12 hexadecimal digits, stands in a token.
fn uuid_in(token: &str) -> Option<usize> {
    let is_uuid = |part: &[u8]| {
        part.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    token.as_bytes().windows(36).position(is_uuid)
}

fn is_mac(token: &str) -> bool {
    let parts: Vec<&str> = token.split([':', '-']).collect();
    parts.len() == 6
        && parts.iter().all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
        && !["00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"].contains(&token)
}

/// Whether four numbers in running text may be a version, as WSL's `2.6.1.0` or a kernel's
/// `5.15.90.1`: those are left alone unless the machine has such an address.
fn may_be_version(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(four) if four.octets()[0] < 16)
}

/// Whether an address belongs to the internet, not to a machine, a local network or a container.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            let [a, b, ..] = four.octets();
            let shared = a == 100 && (64..128).contains(&b);
            !(four.is_private()
                || four.is_loopback()
                || four.is_link_local()
                || four.is_multicast()
                || four.is_broadcast()
                || four.is_documentation()
                || shared
                || a == 0)
        }
        // Global unicast addresses are 2000::/3.
        IpAddr::V6(six) => six.segments()[0] & 0xe000 == 0x2000 && six.segments()[..2] != [0x2001, 0xdb8],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn redacted(value: &Value) -> Value {
        Redaction::of(value).apply(value)
    }

    #[test]
    fn users_and_machines_lose_their_names_everywhere() {
        let given = json!({
            "hostname": "annas-pc",
            "user": { "uid": 1000, "name": "anna" },
            "env": { "HOME": "/home/anna", "HF_TOKEN": "hf_123" },
            "files": { "/mnt/c/Users/Anna Müller/.wslconfig": "swapFile=C:\\\\Users\\\\Anna Müller\\\\s.vhdx" },
            "commands": { "hostname": "annas-pc\n", "ls": "savanna" },
        });
        assert_eq!(
            redacted(&given),
            json!({
                "hostname": "xxxxx-xx",
                "user": { "uid": 1000, "name": "xxxx" },
                "env": { "HOME": "/home/xxxx", "HF_TOKEN": "<hidden>" },
                "files": { "/mnt/c/Users/xxxx xüxxxx/.wslconfig": "swapFile=C:\\\\Users\\\\xxxx xüxxxx\\\\s.vhdx" },
                "commands": { "hostname": "xxxxx-xx\n", "ls": "savanna" },
            })
        );
    }

    #[test]
    fn addresses_and_identifiers_stay_distinct() {
        let given = json!([
            "GPU-f15ae561-21b1-6003-c768-861fc285203b",
            "GPU-466be1f8-6148-1a27-a450-592604f3df54",
            "GPU-f15ae561-21b1-6003-c768-861fc285203b",
            "5.6.7.8 may be a version; 52.3.4.5/24 and 172.17.0.1 and 2.6.1.0",
            "link/ether aa:bb:cc:dd:ee:01 brd ff:ff:ff:ff:ff:ff",
            "00000000:01:00.0",
            "http://anna:secret@proxy.example:3128/",
        ]);
        assert_eq!(
            redacted(&given),
            json!([
                "GPU-00000000-0000-0000-0000-000000000001",
                "GPU-00000000-0000-0000-0000-000000000002",
                "GPU-00000000-0000-0000-0000-000000000001",
                "5.6.7.8 may be a version; 203.0.113.1/24 and 172.17.0.1 and 2.6.1.0",
                "link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff",
                "00000000:01:00.0",
                "http://hidden@proxy.example:3128/",
            ])
        );
    }

    #[test]
    fn text_in_utf_16_is_redacted_in_its_encoding() {
        let utf16 = |text: &str| {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            json!({ "base64": STANDARD.encode(bytes) })
        };
        assert_eq!(redacted(&json!([utf16("C:\\Users\\anna\\x")])), json!([utf16("C:\\Users\\xxxx\\x")]));
    }

    proptest! {
        #[test]
        fn a_redacted_text_has_nothing_left_to_redact(text in "(/home/|GPU-|[a-f0-9:.-]|\\PC){0,60}") {
            let once = redacted(&json!([text]));
            prop_assert_eq!(redacted(&once), once);
        }
    }
}
