//! Numbered replacements for identifiers and public addresses. Each address maps to one address of
//! the ranges reserved for documentation, and addresses of one network stay in one network, because
//! the checks compare networks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The networks reserved for documentation, with 254 addresses each.
const RANGES: [[u8; 3]; 3] = [[203, 0, 113], [198, 51, 100], [192, 0, 2]];

/// The replacements of one recording.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// Addresses that are certainly not versions, because the machine uses them as addresses.
    known: BTreeSet<IpAddr>,
    /// The machine's own public networks: first address and prefix length.
    own: Vec<(u32, u32)>,
    uuids: BTreeMap<String, usize>,
    macs: BTreeMap<String, usize>,
    /// The range for each network: one of the machine's own, or a /24.
    ranges: BTreeMap<(u32, u32), usize>,
    used: [u8; 3],
    fourth: BTreeMap<Ipv4Addr, Ipv4Addr>,
    sixth: BTreeMap<Ipv6Addr, usize>,
}

impl Numbers {
    /// Records every address in the text of a field that only contains addresses. The prefix length
    /// of `10.0.0.7/24` is ignored.
    pub(super) fn know(&mut self, text: &str) {
        self.known.extend(fourth_in(text, None).map(|(_, _, address)| IpAddr::V4(address)));
    }

    /// Records the addresses in any text that cannot be versions: those followed by a port, or
    /// preceded by `://` or `nameserver`.
    pub(super) fn know_certain(&mut self, text: &str) {
        for (start, end, address) in fourth_in(text, None) {
            let (before, after) = (&text[..start], &text[end..]);
            let after = after.strip_prefix(']').unwrap_or(after);
            let port = after.strip_prefix(':').unwrap_or_default();
            let is_certain = port.starts_with(|letter: char| letter.is_ascii_digit())
                || ["://", "://[", "nameserver ", "nameserver\t"].iter().any(|sign| before.ends_with(sign))
                || mapped(before);
            if is_certain {
                self.known.insert(IpAddr::V4(address));
            }
        }
    }

    /// Records the address and network of an interface, such as `52.3.4.5/20`.
    pub(super) fn know_interface(&mut self, text: &str) {
        self.know(text);
        let Some((address, length)) = text.split_once('/') else { return };
        if let (Ok(address), Ok(length @ 1..=32)) = (address.parse::<Ipv4Addr>(), length.parse::<u32>())
            && is_public(IpAddr::V4(address))
        {
            let network = (first_of(address, length), length);
            if !self.own.contains(&network) {
                self.ranges.insert(network, self.own.len() % RANGES.len());
                self.own.push(network);
            }
        }
    }

    /// Replaces UUIDs, MAC addresses and public addresses.
    pub(super) fn replace(&mut self, text: &str) -> String {
        let is_part = |letter: char| letter.is_ascii_hexdigit() || matches!(letter, '-' | ':' | '.');
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            result.push_str(&rest[..start]);
            let tail = &rest[start..];
            let end = tail.find(|letter| !is_part(letter)).unwrap_or(tail.len());
            let before = rest[..start].chars().next_back();
            let is_followed = tail[end..].starts_with(|letter: char| letter.is_alphanumeric());
            result.push_str(&self.replacement(&tail[..end], before, is_followed));
            rest = &tail[end..];
        }
        result.push_str(rest);
        result
    }

    /// The replacement of a token that follows the character `before`.
    fn replacement(&mut self, token: &str, before: Option<char>, is_followed: bool) -> String {
        if let Some(at) = uuid_in(token) {
            let uuid = token[at..at + 36].to_lowercase();
            let number = number_of(&mut self.uuids, uuid);
            return format!("{}00000000-0000-0000-0000-{number:012x}{}", &token[..at], &token[at + 36..]);
        }
        if is_mac(token) {
            let number = number_of(&mut self.macs, token.to_lowercase());
            return format!("02:00:00:00:{:02x}:{:02x}", number / 256 % 256, number % 256);
        }
        for whole in [token, token.trim_end_matches(['.', ':', '-'])] {
            if let Ok(address) = whole.parse::<Ipv6Addr>()
                && address.to_ipv4_mapped().is_none()
                && is_public(IpAddr::V6(address))
            {
                let number = number_of(&mut self.sixth, address);
                return format!("2001:db8::{number:x}{}", &token[whole.len()..]);
            }
        }
        let mut result = String::with_capacity(token.len());
        let mut done = 0;
        for (start, end, address) in fourth_in(token, before).collect::<Vec<_>>() {
            let is_known = || self.known.contains(&IpAddr::V4(address)) || !may_be_version(address);
            if is_public(IpAddr::V4(address)) && is_known() && !(is_followed && end == token.len()) {
                result.push_str(&token[done..start]);
                result.push_str(&self.fourth(address).to_string());
                done = end;
            }
        }
        result.push_str(&token[done..]);
        result
    }

    /// The replacement of an IPv4 address.
    fn fourth(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        if let Some(known) = self.fourth.get(&address) {
            return *known;
        }
        let own = self.own.iter().find(|(first, length)| first_of(address, *length) == *first);
        let network = own.copied().unwrap_or((first_of(address, 24), 24));
        // Other addresses get a different range from the machine's own networks while one is free.
        let kept = self.own.len().min(RANGES.len() - 1);
        let others = self.ranges.len() - self.own.len();
        let next = kept + others % (RANGES.len() - kept);
        let range = *self.ranges.entry(network).or_insert(next);
        self.used[range] = self.used[range] % 254 + 1;
        let [a, b, c] = RANGES[range];
        let replacement = Ipv4Addr::new(a, b, c, self.used[range]);
        self.fourth.insert(address, replacement);
        replacement
    }
}

/// Whether the text ends with the prefix of an IPv4-mapped IPv6 address.
fn mapped(before: &str) -> bool {
    let end = before.len().checked_sub("::ffff:".len()).and_then(|from| before.get(from..));
    end.is_some_and(|end| end.eq_ignore_ascii_case("::ffff:"))
}

fn number_of<K: Ord>(table: &mut BTreeMap<K, usize>, key: K) -> usize {
    let next = table.len() + 1;
    *table.entry(key).or_insert(next)
}

/// The first address of the network that contains an address.
fn first_of(address: Ipv4Addr, length: u32) -> u32 {
    address.to_bits() & u32::MAX.checked_shl(32_u32.saturating_sub(length)).unwrap_or(0)
}

/// The IPv4 addresses in a text that are not part of a longer word. `before` is the character before
/// the text.
fn fourth_in(text: &str, before: Option<char>) -> impl Iterator<Item = (usize, usize, Ipv4Addr)> {
    let is_digit = |letter: char| letter.is_ascii_digit() || letter == '.';
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + text[from..].find(is_digit)?;
            let end = text[start..].find(|letter| !is_digit(letter)).map_or(text.len(), |at| start + at);
            from = end;
            // A sentence may end with an address.
            let body = text[start..end].trim_end_matches('.');
            let is_part =
                |letter: Option<char>| letter.is_some_and(|one| one.is_alphanumeric() || one == '_');
            let previous = text[..start].chars().next_back().or(before);
            if is_part(previous) || is_part(text[end..].chars().next()) {
                continue;
            }
            if let Ok(address) = body.parse() {
                return Some((start, start + body.len(), address));
            }
        }
    })
}

/// The position of a UUID (8-4-4-4-12 hexadecimal digits) in a token.
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

/// Whether four numbers in running text may be a version, such as WSL's `2.6.1.0` or a kernel's
/// `5.15.90.1`. Those are kept unless the machine uses the address.
fn may_be_version(address: Ipv4Addr) -> bool {
    address.octets()[0] < 16
}

/// Whether an address is public, not one of a machine, a local network or a container.
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
    use super::*;

    #[test]
    fn addresses_are_found_in_every_notation() {
        let text = "52.95.110.7:4444 [52.95.110.7:443] tcp://52.95.110.7:29500 ::ffff:52.95.110.7 \
                    [2a00:1450::1]:443, 93.184.216.34. v52.95.110.7 10.0.0.7:80 5.6.7.8";
        assert_eq!(
            Numbers::default().replace(text),
            "203.0.113.1:4444 [203.0.113.1:443] tcp://203.0.113.1:29500 ::ffff:203.0.113.1 \
             [2001:db8::1]:443, 198.51.100.1. v52.95.110.7 10.0.0.7:80 5.6.7.8"
        );
    }

    #[test]
    fn context_distinguishes_addresses_from_versions() {
        for text in ["8.8.4.4:443", "tcp://8.8.4.4/x", "nameserver 8.8.4.4\n", "::ffff:8.8.4.4"] {
            let mut numbers = Numbers::default();
            numbers.know_certain(text);
            assert_eq!(numbers.replace("8.8.4.4 and 2.6.1.0"), "203.0.113.1 and 2.6.1.0", "{text}");
        }
    }

    #[test]
    fn addresses_of_one_network_stay_in_one_network() {
        let mut numbers = Numbers::default();
        numbers.know_interface("52.3.16.5/20");
        assert_eq!(
            numbers.replace("93.1.2.3 52.3.17.9 52.3.16.5/20 93.1.2.4 94.1.2.3 95.1.2.3"),
            "198.51.100.1 203.0.113.1 203.0.113.2/20 198.51.100.2 192.0.2.1 198.51.100.3"
        );
    }
}
