//! Removes from a recording what must not be published: names of users and machines, MAC and public
//! addresses, UUIDs, email addresses and secrets. Each value has the same replacement everywhere, which
//! preserves the relations between answers. The replacement of a name has the same length, spaces and
//! non-ASCII letters, because those break programs and matter to checks. Field names and terms of the
//! format are never replaced, even if a user has such a name.

mod names;
mod numbers;
mod ordinary;
mod secrets;
mod visit;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use yolo_base::env::{MASTER_ADDR, USER, USERNAME};

use self::names::Names;
use self::numbers::Numbers;
pub use self::secrets::YOLO_COMMANDS;
use self::visit::visit;
use super::answer::decode;

/// How a text is treated, which depends on its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// A term of the format, which stays.
    Word,
    /// The name of a user or a machine, or an address.
    Name,
    /// Anything that may hold names, addresses and secrets.
    Text,
    /// The command line of a process.
    Process,
    /// /etc/hosts.
    Hosts,
}

/// Variables whose values are names of users or machines.
const NAMING: [&str; 8] =
    [USER, "LOGNAME", USERNAME, "HOSTNAME", "COMPUTERNAME", "NAME", "WSL_HOST_NAME", MASTER_ADDR];
/// Parts of the names of variables whose values contain addresses.
const WITH_ADDRESSES: [&str; 6] = ["ADDR", "HOST", "COMM_ID", "PROXY", "SSH_", "ENDPOINT"];

/// The replacements for one recording.
#[derive(Debug, Default)]
pub(super) struct Redaction {
    names: Names,
    numbers: Numbers,
}

impl Redaction {
    /// Collects what must be redacted in a recording.
    pub(super) fn of(recording: &Value) -> Self {
        let mut numbers = Numbers::default();
        visit(&recording["interfaces"], &mut |text| numbers.know_interface(text));
        for place in [&recording["names"], &recording["listening"], &recording["binds"]] {
            visit(place, &mut |text| numbers.know(text));
        }
        visit(&recording["intent"]["master_addr"], &mut |text| numbers.know(text));
        for (name, value) in recording["env"].as_object().into_iter().flatten() {
            let upper = name.to_uppercase();
            if WITH_ADDRESSES.iter().any(|word| upper.contains(word)) {
                visit(value, &mut |text| numbers.know(text));
            }
        }
        visit(recording, &mut |text| numbers.know_certain(text));
        Self { names: Names::of(recording), numbers }
    }

    /// The redacted recording.
    pub(super) fn recording(&mut self, recording: &Value) -> Value {
        let Some(sections) = recording.as_object() else { return self.texts(recording) };
        sections.iter().map(|(name, content)| (name.clone(), self.section(name, content))).collect()
    }

    /// Findings and similar values, with the same replacements as the recording.
    pub(super) fn texts(&mut self, value: &Value) -> Value {
        self.value(value, "", &|field| match field {
            "id" | "area" | "status" => Treatment::Word,
            _ => Treatment::Text,
        })
    }

    fn section(&mut self, section: &str, content: &Value) -> Value {
        // The treatment by field name. An item of a list has the name of the list's field.
        let fields: fn(&str) -> Treatment = match section {
            "comment" | "places" | "nvml" => |_| Treatment::Text,
            "hostname" => |_| Treatment::Name,
            "system" => |field| if field == "kernel" { Treatment::Word } else { Treatment::Text },
            "user" => |field| if field == "name" { Treatment::Name } else { Treatment::Word },
            "intent" => |field| match field {
                "master_addr" => Treatment::Name,
                "data" | "weights" | "model" | "project" | "resume" | "device_words" => Treatment::Text,
                _ => Treatment::Word,
            },
            "listening" => |field| match field {
                "address" | "user" => Treatment::Name,
                _ => Treatment::Word,
            },
            "interfaces" => |field| if field == "addresses" { Treatment::Name } else { Treatment::Word },
            "processes" => |field| if field == "command" { Treatment::Process } else { Treatment::Word },
            "files" | "heads" | "tails" | "links" | "folders" | "stats" | "filesystems" | "env"
            | "commands" | "libraries" | "names" | "registry" | "binds" | "binaries" => {
                return match content {
                    Value::Object(rows) => self.table(section, rows),
                    // A malformed recording, written by hand.
                    other => self.texts(other),
                };
            }
            _ => |_| Treatment::Word,
        };
        self.value(content, "", &|field| if field == "error" { Treatment::Text } else { fields(field) })
    }

    /// A table. The names of its rows are redacted too.
    fn table(&mut self, section: &str, rows: &Map<String, Value>) -> Value {
        let row = |(name, answer): (&String, &Value)| {
            let key = match section {
                // Names of variables, libraries and registry values identify nobody.
                "env" | "libraries" | "registry" => name.clone(),
                "names" | "binds" => self.text(name, Treatment::Name),
                _ => self.text(name, Treatment::Text),
            };
            (key, self.row(section, name, answer))
        };
        Value::Object(rows.iter().map(row).collect())
    }

    fn row(&mut self, section: &str, name: &str, answer: &Value) -> Value {
        if section == "env" && secrets::is_secret_variable(name) && answer.is_string() {
            return Value::from("<hidden>");
        }
        let kind = match section {
            "env" if NAMING.contains(&name) => Treatment::Name,
            "folders" if names::holds_homes(name) => Treatment::Name,
            "files" if name.ends_with("etc/hosts") => Treatment::Hosts,
            "names" => Treatment::Name,
            "stats" | "binds" | "binaries" => Treatment::Word,
            _ => Treatment::Text,
        };
        let is_library = section == "libraries";
        self.value(answer, "", &|field| match field {
            "error" => Treatment::Text,
            "type" | "version" | "via" if is_library || section == "filesystems" => Treatment::Word,
            _ => kind,
        })
    }

    /// A value. The enclosing field determines how its texts are treated.
    fn value(&mut self, value: &Value, field: &str, kind: &dyn Fn(&str) -> Treatment) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text, kind(field))),
            Value::Array(items) => items.iter().map(|item| self.value(item, field, kind)).collect(),
            Value::Object(map) => {
                if let Some(Value::String(encoded)) = map.get("base64") {
                    return self.encoded(encoded, kind(field));
                }
                let fields = map.iter();
                fields.map(|(name, item)| (name.clone(), self.value(item, name, kind))).collect()
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str, kind: Treatment) -> String {
        let named = match kind {
            Treatment::Word => return text.to_owned(),
            Treatment::Name => self.names.name(text),
            Treatment::Text => self.names.text(text),
            Treatment::Process => self.names.text(&secrets::program_of(text)),
            Treatment::Hosts => self.names.hosts_file(text),
        };
        self.numbers.replace(&secrets::without_secrets(&named))
    }

    /// Redacts UTF-16 text in its encoding. Other bytes are redacted as Latin-1, which keeps bytes that
    /// are not text unchanged.
    fn encoded(&mut self, encoded: &str, kind: Treatment) -> Value {
        let bytes = STANDARD.decode(encoded).unwrap_or_default();
        let is_marked = |mark: [u8; 2]| bytes.starts_with(&mark);
        let kept = if is_marked([0xFE, 0xFF]) {
            let text = self.text(&decode(&bytes), kind);
            [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
        } else if is_marked([0xFF, 0xFE]) {
            let text = self.text(&decode(&bytes), kind);
            [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
        } else if bytes.get(1) == Some(&0) {
            self.text(&decode(&bytes), kind).encode_utf16().flat_map(u16::to_le_bytes).collect()
        } else {
            let letters: String = bytes.iter().map(|&byte| char::from(byte)).collect();
            let text = self.text(&letters, kind);
            text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?')).collect()
        };
        // Bytes that do not decode cleanly must not change in the round trip.
        let is_same = self.text(&decode(&bytes), kind) == decode(&bytes);
        serde_json::json!({ "base64": STANDARD.encode(if is_same { bytes } else { kept }) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn redacted(value: &Value) -> Value {
        Redaction::of(value).recording(value)
    }

    #[test]
    fn names_of_users_and_machines_are_redacted_everywhere() {
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
    fn different_addresses_and_identifiers_stay_different() {
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
    fn addresses_that_look_like_versions_are_redacted_by_context() {
        let given = json!({
            "intent": { "master_addr": "8.8.4.4" },
            "env": { "NCCL_COMM_ID": "52.95.110.7:4444", "MASTER_ADDR": "8.8.4.4" },
            "commands": { "dmesg": "from [9.9.9.9]:443 of ::ffff:52.95.110.7 to tcp://11.1.2.3:29500; wsl 2.6.1.0" },
            "processes": [{ "pid": 7, "name": "python3", "command": "python3 train.py --master 8.8.4.4" }],
        });
        assert_eq!(
            redacted(&given),
            json!({
                "intent": { "master_addr": "203.0.113.1" },
                "env": { "NCCL_COMM_ID": "198.51.100.1:4444", "MASTER_ADDR": "203.0.113.1" },
                "commands": {
                    "dmesg": "from [192.0.2.1]:443 of ::ffff:198.51.100.1 to tcp://203.0.113.2:29500; wsl 2.6.1.0",
                },
                "processes": [{ "pid": 7, "name": "python3", "command": "python3 train.py …" }],
            })
        );
    }

    #[test]
    fn arguments_of_processes_are_removed() {
        let command = "python3 -c 'import time;time.sleep(9)' train.py --password hunter2 --token=abc123tok \
                   HF_TOKEN=hf_xyzzy --api-key sk-live-1 -e mail@kowalska.org";
        let given = json!({ "processes": [{ "pid": 7, "name": "python3", "command": command }] });
        assert_eq!(redacted(&given)["processes"][0]["command"], "python3 train.py …");
    }

    #[test]
    fn keywords_of_the_format_are_never_redacted() {
        let given = json!({
            "version": 1,
            "intent": { "run": true, "cache": "ram", "backend": "nccl" },
            "user": { "uid": 7, "name": "file" },
            "env": { "HOME": "/home/file", "YOLO_HOME": "/data/home/cache" },
            "folders": { "/home": ["file"], "/data/home": ["cache", "config"] },
            "stats": { "/home/file/file": { "kind": "file", "size": 1 } },
        });
        let mut wanted = given.clone();
        wanted["user"]["name"] = json!("xxxx");
        wanted["env"]["HOME"] = json!("/home/xxxx");
        wanted["folders"]["/home"] = json!(["xxxx"]);
        wanted["stats"] = json!({ "/home/xxxx/file": { "kind": "file", "size": 1 } });
        assert_eq!(redacted(&given), wanted);
    }

    #[test]
    fn utf_16_text_is_redacted_in_its_encoding() {
        let utf16 = |text: &str| {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            json!({ "base64": STANDARD.encode(bytes) })
        };
        assert_eq!(redacted(&json!([utf16("C:\\Users\\anna\\x")])), json!([utf16("C:\\Users\\xxxx\\x")]));
    }

    #[test]
    fn bytes_around_a_name_are_kept() {
        let encoded = |name: &str| {
            let bytes =
                [&[0x80, 0xFF, 0x50, 0x4B][..], b"/home/", name.as_bytes(), &[0x2F, 0xC3, 0x28]].concat();
            json!({ "base64": STANDARD.encode(bytes) })
        };
        assert_eq!(redacted(&json!([encoded("anna")])), json!([encoded("xxxx")]));
    }

    proptest! {
        #[test]
        fn a_redacted_text_has_nothing_left_to_redact(text in "(/home/|GPU-|[a-f0-9:.-]|\\PC){0,60}") {
            let once = redacted(&json!([text]));
            prop_assert_eq!(redacted(&once), once);
        }
    }
}
