//! Rules of the kernel's packet filter that keep other machines out, where neither ufw nor firewalld made them: a file for
//! nftables, or rules that iptables restores at each start, as in Oracle's images.

use std::net::Ipv4Addr;

use super::leads_out;
use crate::facts::Host;

/// What keeps them out, and the commands that let a network in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) name: &'static str,
    /// The line that closes the machine.
    pub(super) seen: String,
    pub(super) commands: Vec<String>,
}

/// The file of nftables' service.
const NFTABLES: [&str; 2] = ["/etc/nftables.conf", "/etc/sysconfig/nftables.conf"];
/// Rules that are restored at each start, the service that does it, and the command that saves new ones.
const IPTABLES: [(&str, &str, &str); 3] = [
    ("/etc/iptables/rules.v4", "netfilter-persistent", "sudo netfilter-persistent save"),
    ("/etc/sysconfig/iptables", "iptables", "sudo service iptables save"),
    ("/etc/iptables/iptables.rules", "iptables", "sudo iptables-save -f /etc/iptables/iptables.rules"),
];

/// The filter of this machine that keeps other machines out, if there is one.
pub(super) fn closed(host: &Host, net: &str) -> Option<Filter> {
    of_nftables(host, net).or_else(|| of_iptables(host, net))
}

fn is_active(host: &Host, service: &str) -> bool {
    let answer = host.command(&["systemctl", "is-active", service]).ok().flatten();
    answer.is_some_and(|output| output.text().trim() == "active")
}

fn of_nftables(host: &Host, net: &str) -> Option<Filter> {
    let text = NFTABLES.iter().find_map(|file| host.text(file).ok().flatten());
    let text = text.filter(|text| text.contains("hook input")).filter(|_| is_active(host, "nftables"));
    // What is in force, if a recording has it.
    let text = host.recorded_output("nft").or(text)?;
    let Chain { table, name, seen } = closed_chain(&text, net)?;
    // iptables keeps its rules there today, and does not know those of others.
    if table.split_whitespace().last() == Some("filter") && name == "INPUT" {
        return None;
    }
    Some(Filter {
        name: "nftables",
        seen,
        commands: vec![format!("sudo nft insert rule {table} {name} ip saddr {net} accept")],
    })
}

/// A chain of nftables that drops what no rule accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chain {
    table: String,
    name: String,
    seen: String,
}

/// `table inet filter { chain input { type filter hook input priority 0; policy drop; … } }`
fn closed_chain(text: &str, net: &str) -> Option<Chain> {
    let mut table = String::new();
    let mut chain = String::new();
    let mut is_input = false;
    let mut found: Option<Chain> = None;
    let lines: Vec<String> =
        text.lines().map(|line| without_sets(line.split('#').next().unwrap_or_default())).collect();
    for line in lines.iter().flat_map(|line| line.split([';', '{'])).map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["table", family, name] => table = format!("{family} {name}"),
            ["table", name] => table = format!("ip {name}"),
            ["chain", name] => (chain, is_input) = (name.to_owned(), false),
            ["type", "filter", "hook", "input", ..] => is_input = true,
            ["policy", "drop"] | ["drop" | "reject", ..] | ["counter", "drop" | "reject", ..] if is_input => {
                let seen = format!("chain {chain} of table {table}: {}", words.join(" "));
                found.get_or_insert(Chain { table: table.clone(), name: chain.clone(), seen });
            }
            // Everything from a network or an interface, whatever its protocol and port.
            ["ip", "saddr", from, ref rest @ ..]
                if is_input && accepts(rest) && from.split(',').any(|from| lets_in(from, net)) =>
            {
                return None;
            }
            ["iif" | "iifname", names, ref rest @ ..] | ["meta", "iif" | "iifname", names, ref rest @ ..]
                if is_input
                    && accepts(rest)
                    && names.split(',').any(|name| leads_out(name.trim_matches('"'))) =>
            {
                return None;
            }
            _ => {}
        }
    }
    found.filter(|chain| !chain.table.is_empty() && !chain.name.is_empty())
}

/// Whether the end of a rule of nftables accepts without a further condition.
fn accepts(rest: &[&str]) -> bool {
    let without_counter = rest.iter().skip_while(|word| {
        matches!(**word, "counter" | "packets" | "bytes")
            || word.chars().all(|letter| letter.is_ascii_digit())
    });
    without_counter.copied().next() == Some("accept")
}

/// A line with `saddr 10.0.0.0/8,192.168.0.0/16` for `saddr { 10.0.0.0/8, 192.168.0.0/16 }`.
fn without_sets(line: &str) -> String {
    let mut result = line.to_owned();
    for word in ["saddr {", "iif {", "iifname {"] {
        let set = result.split_once(word).and_then(|(before, rest)| {
            let (inside, after) = rest.split_once('}')?;
            let inside: String = inside.chars().filter(|letter| !letter.is_whitespace()).collect();
            Some(format!("{before}{} {inside} {after}", word.trim_end_matches(" {")))
        });
        result = set.unwrap_or(result);
    }
    result
}

/// Whether a rule for this source lets in the machines of a network: not a single machine, nor another network. A name of a
/// set, of which the machines are unknown, counts.
fn lets_in(from: &str, net: &str) -> bool {
    if from.starts_with(['$', '@']) {
        return true;
    }
    let Some((from, length)) = network(from).filter(|(_, length)| *length < 31) else { return false };
    let Some((own, own_length)) = network(net) else { return true };
    let mask = u32::MAX.checked_shl(32 - length.min(own_length)).unwrap_or(0);
    from & mask == own & mask
}

/// `10.0.0.0/16`, with its length of 32 if there is none.
fn network(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    let length = length.parse().ok().filter(|length| *length <= 32)?;
    Some((address.parse::<Ipv4Addr>().ok()?.to_bits(), length))
}

fn of_iptables(host: &Host, net: &str) -> Option<Filter> {
    let outputs =
        ["iptables", "iptables-save"].into_iter().flat_map(|program| host.recorded_outputs(program));
    let in_force = outputs.map(|(_, output)| output.text()).find_map(|text| closing_line(&text, net));
    let restored = || {
        IPTABLES.iter().find_map(|(file, service, save)| {
            let seen = closing_line(&host.text(file).ok().flatten()?, net)?;
            is_active(host, service).then(|| (format!("{file}: {seen}"), *save))
        })
    };
    let (seen, save) = match in_force {
        Some(seen) => {
            let saved = IPTABLES.iter().find(|(file, ..)| host.exists(file) == Ok(true));
            (seen, saved.map_or("", |(_, _, save)| *save))
        }
        None => restored()?,
    };
    let accept = format!("sudo iptables -I INPUT -s {net} -j ACCEPT");
    let commands = [accept.as_str(), save].into_iter().filter(|command| !command.is_empty());
    Some(Filter { name: "iptables", seen, commands: commands.map(ToOwned::to_owned).collect() })
}

/// The line that refuses what no rule before it accepts, in the output of `iptables -S`, `iptables -L` or `iptables-save`.
fn closing_line(text: &str, net: &str) -> Option<String> {
    let mut chain = "";
    let mut found = None;
    for line in text.lines().map(str::trim) {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        // `-v` adds the numbers of packets and bytes, and the interfaces.
        let mut interface = None;
        if words.len() > 8 && words[0].starts_with(|letter: char| letter.is_ascii_digit()) {
            interface = words.drain(5..7).next();
            words.drain(..2);
        }
        let is_closing = match words[..] {
            ["Chain", name, ..] => {
                chain = name;
                name == "INPUT" && line.contains("(policy DROP")
            }
            ["-P", "INPUT", "DROP"]
            | [":INPUT", "DROP", ..]
            | ["-A", "INPUT", "-j", "DROP" | "REJECT", ..] => true,
            ["-A", "INPUT", ref rule @ ..] if opens(rule, net) => return None,
            ["ACCEPT", "all" | "0" | "tcp" | "6", _, from, "anywhere" | "0.0.0.0/0", ref rest @ ..]
                if chain == "INPUT"
                    && rest.first().is_none_or(|word| *word == "/*")
                    && (lets_in(from, net) && from != "0.0.0.0/0"
                        || interface.is_some_and(|name| name != "*" && leads_out(name))) =>
            {
                return None;
            }
            ["DROP" | "REJECT", "all" | "0", _, from, to, ref rest @ ..] if chain == "INPUT" => {
                let is_any = matches!((from, to), ("anywhere", "anywhere") | ("0.0.0.0/0", "0.0.0.0/0"));
                is_any && rest.first().is_none_or(|word| word.starts_with("reject-with"))
            }
            _ => false,
        };
        if is_closing && found.is_none() {
            found = Some(line.to_owned());
        }
    }
    found
}

/// Whether a rule such as `-s 10.0.0.0/16 -p tcp -m comment --comment "cluster" -j ACCEPT` lets in everything from a network
/// or through an interface.
fn opens(rule: &[&str], net: &str) -> bool {
    let (mut from, mut interface) = (None, None);
    let mut words = rule.iter().copied();
    while let Some(word) = words.next() {
        match (word, words.next()) {
            ("-s", Some(value)) => from = Some(value),
            ("-i", Some(value)) => interface = Some(value),
            ("-p", Some("tcp" | "all")) | ("-m", Some("tcp" | "comment")) => {}
            ("--comment", Some(value)) => {
                let is_open = value.starts_with('"') && (value.len() == 1 || !value.ends_with('"'));
                while is_open && words.next().is_some_and(|word| !word.ends_with('"')) {}
            }
            ("-j", Some("ACCEPT")) => {
                let is_wide = from.is_none_or(|from| lets_in(from, net));
                let is_outside = interface.is_none_or(|name| leads_out(name.trim_end_matches('+')));
                return is_wide && is_outside;
            }
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NET: &str = "10.0.0.0/24";

    #[test]
    fn a_policy_or_the_last_rule_closes_a_chain() {
        let text = "#!/usr/sbin/nft -f\nflush ruleset\ntable inet filter {\n\tchain input {\n\
            \t\ttype filter hook input priority filter; policy drop;\n\t\tct state established accept\n\t}\n\
            \tchain forward {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n";
        let chain = closed_chain(text, NET).unwrap();
        assert_eq!((chain.table.as_str(), chain.name.as_str()), ("inet filter", "input"));
        let open = "table inet filter {\n chain input {\n type filter hook input priority 0;\n }\n chain forward {\n\
            type filter hook forward priority 0; policy drop;\n }\n}\n";
        assert_eq!(closed_chain(open, NET), None);
        for (rule, is_open) in [
            ("ip saddr 10.0.0.0/8 accept", true),
            ("ip saddr { 192.168.0.0/16, 10.0.0.0/8 } counter packets 1 bytes 60 accept", true),
            ("ip saddr @cluster accept", true),
            ("iifname \"ib0\" accept", true),
            ("iif { \"lo\", \"eth1\" } accept", true),
            ("iif \"lo\" accept", false),
            ("ip saddr 10.0.0.9 accept", false),
            ("ip saddr 192.168.0.0/16 accept", false),
            ("ip saddr 10.0.0.0/8 tcp dport 22 accept", false),
        ] {
            let found = closed_chain(&text.replace("ct state established accept", rule), NET);
            assert_eq!(found.is_none(), is_open, "{rule}");
        }
    }

    #[test]
    fn a_rule_of_iptables_opens_a_network_or_an_interface() {
        for (rule, is_open) in [
            ("-A INPUT -s 10.0.0.0/16 -j ACCEPT", true),
            ("-A INPUT -s 10.0.0.0/16 -p tcp -j ACCEPT", true),
            ("-A INPUT -s 10.0.0.0/16 -m comment --comment \"our own cluster\" -j ACCEPT", true),
            ("-A INPUT -i eth1 -j ACCEPT", true),
            ("-A INPUT -i lo -j ACCEPT", false),
            ("-A INPUT -s 10.0.0.9/32 -j ACCEPT", false),
            ("-A INPUT -s 172.16.0.0/12 -j ACCEPT", false),
            ("-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT", false),
            ("-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT", false),
        ] {
            assert_eq!(closing_line(&format!("-P INPUT DROP\n{rule}\n"), NET).is_none(), is_open, "{rule}");
        }
        let listed = "Chain INPUT (policy DROP)\ntarget prot opt source destination\n\
            ACCEPT all -- 10.0.0.0/16 anywhere\n";
        assert_eq!(closing_line(listed, NET), None);
        assert!(closing_line(&listed.replace("10.0.0.0/16", "anywhere"), NET).is_some());
    }

    #[test]
    fn iptables_closes_in_three_notations() {
        for text in [
            "-P INPUT DROP\n-P FORWARD ACCEPT\n",
            "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp --dport 22 -j ACCEPT\n\
             -A INPUT -j REJECT --reject-with icmp-host-prohibited\nCOMMIT\n",
            "Chain INPUT (policy ACCEPT)\ntarget prot opt source destination\n\
             REJECT all -- anywhere anywhere reject-with icmp-host-prohibited\n",
            "Chain INPUT (policy ACCEPT 0 packets, 0 bytes)\n pkts bytes target prot opt in out source destination\n\
             12 720 REJECT 0 -- * * 0.0.0.0/0 0.0.0.0/0 reject-with icmp-host-prohibited\n",
        ] {
            assert!(closing_line(text, NET).is_some(), "{text}");
        }
        for text in [
            "-P INPUT ACCEPT\n-P FORWARD DROP\n-A DOCKER -j DROP\n",
            "Chain INPUT (policy ACCEPT)\nDROP all -- 203.0.113.7 anywhere\nChain FORWARD (policy DROP)\n",
            "-P INPUT DROP\n-A INPUT -s 10.0.0.0/16 -j ACCEPT\n",
        ] {
            assert_eq!(closing_line(text, NET), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_rules_are_read(text in "(table |inet |chain |input|hook |policy drop|;|\\{|-A INPUT |-j |REJECT|Chain |all|\\PC|\n| ){0,40}") {
            let _ = (closed_chain(&text, &text), closing_line(&text, &text));
        }
    }
}
