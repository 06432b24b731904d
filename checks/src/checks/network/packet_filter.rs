//! Rules of the kernel's packet filter that keep other machines out, where neither ufw nor firewalld made them: a file for
//! nftables, or rules that iptables restores at each start, as in Oracle's images.

use super::packet_rules::{Chains, Peers, Rule, Verdict};
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
pub(super) fn closed(host: &Host, peers: &Peers) -> Option<Filter> {
    of_nftables(host, peers).or_else(|| of_iptables(host, peers))
}

fn is_active(host: &Host, service: &str) -> bool {
    let answer = host.command(&["systemctl", "is-active", service]).ok().flatten();
    answer.is_some_and(|output| output.text().trim() == "active")
}

fn of_nftables(host: &Host, peers: &Peers) -> Option<Filter> {
    let text = NFTABLES.iter().find_map(|file| host.text(file).ok().flatten());
    let text = text.filter(|text| text.contains("hook input")).filter(|_| is_active(host, "nftables"));
    // What is in force, if a recording has it.
    let text = host.recorded_output("nft").or(text)?;
    let Chain { table, name, seen } = closed_chain(&text, peers)?;
    // iptables keeps its rules there today, and does not know those of others.
    if table.split_whitespace().last() == Some("filter") && name == "INPUT" {
        return None;
    }
    Some(Filter {
        name: "nftables",
        seen,
        commands: vec![format!("sudo nft insert rule {table} {name} ip saddr {} accept", peers.net)],
    })
}

/// A chain of nftables that drops what no rule accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chain {
    table: String,
    name: String,
    seen: String,
}

/// `table inet filter { chain input { type filter hook input priority 0; policy drop; … } }`. Every chain at the input
/// decides: what one accepts, another may drop.
fn closed_chain(text: &str, peers: &Peers) -> Option<Chain> {
    let (mut table, mut chain) = (String::new(), String::new());
    let mut chains = Chains::default();
    let mut inputs: Vec<Chain> = Vec::new();
    let lines: Vec<String> =
        text.lines().map(|line| without_sets(line.split('#').next().unwrap_or_default())).collect();
    for line in lines.iter().flat_map(|line| line.split([';', '{'])).map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["table", family, name] => table = format!("{family} {name}"),
            ["table", name] => table = format!("ip {name}"),
            ["chain", name] => name.clone_into(&mut chain),
            ["type", "filter", "hook", "input", ..] => {
                inputs.push(Chain { table: table.clone(), name: chain.clone(), seen: String::new() });
            }
            ["policy", "drop"] => {
                let policy = format!("chain {chain} of table {table}: policy drop");
                chains.close(&of_table(&table, &chain), policy);
            }
            _ => {
                let seen = || format!("chain {chain} of table {table}: {}", words.join(" "));
                if let Some(rule) = of_words(&words, &table) {
                    chains.add(&of_table(&table, &chain), rule, seen());
                }
            }
        }
    }
    inputs.into_iter().filter(|chain| !chain.table.is_empty() && !chain.name.is_empty()).find_map(|chain| {
        let seen = chains.closing(&of_table(&chain.table, &chain.name), peers)?;
        Some(Chain { seen, ..chain })
    })
}

/// The name of a chain among those of all tables.
fn of_table(table: &str, chain: &str) -> String {
    format!("{table} {chain}")
}

/// A rule of nftables that is about a network or an interface alone, whatever the port.
fn of_words(words: &[&str], table: &str) -> Option<Rule> {
    let mut rule = Rule::default();
    let mut rest = words;
    loop {
        rest = match *rest {
            ["meta", "l4proto" | "protocol", "tcp" | "ip", ref rest @ ..] => rest,
            ["ip", "protocol", "tcp", ref rest @ ..] => rest,
            ["ip", "saddr", from, ref rest @ ..] if from != "!=" => {
                rule.from = Some(from.split(',').map(ToOwned::to_owned).collect());
                rest
            }
            ["meta", ref rest @ ..] if matches!(rest.first(), Some(&("iif" | "iifname"))) => rest,
            ["iif" | "iifname", "!=", names, ref rest @ ..] => {
                rule.not_through = Some(interfaces(names));
                rest
            }
            ["iif" | "iifname", names, ref rest @ ..] => {
                rule.through = Some(interfaces(names));
                rest
            }
            ["counter", "packets", _, "bytes", _, ref rest @ ..] | ["counter", ref rest @ ..] => rest,
            _ => break,
        };
    }
    rule.verdict = match *rest {
        ["accept", ..] => Verdict::Accept,
        ["drop" | "reject", ..] => Verdict::Refuse,
        ["jump" | "goto", chain, ..] => Verdict::Jump(of_table(table, chain)),
        _ => return None,
    };
    Some(rule)
}

/// `"ib0","eth*"`
fn interfaces(names: &str) -> Vec<String> {
    names.split(',').map(|name| name.trim_matches('"').to_owned()).collect()
}

/// A line with `saddr 10.0.0.0/8,192.168.0.0/16` for `saddr { 10.0.0.0/8, 192.168.0.0/16 }`.
fn without_sets(line: &str) -> String {
    let mut result = line.to_owned();
    for word in ["saddr {", "iif {", "iifname {", "l4proto {"] {
        let set = result.split_once(word).and_then(|(before, rest)| {
            let (inside, after) = rest.split_once('}')?;
            let mut inside: String = inside.chars().filter(|letter| !letter.is_whitespace()).collect();
            if word == "l4proto {" && inside.split(',').any(|protocol| protocol == "tcp") {
                inside = "tcp".to_owned();
            }
            Some(format!("{before}{} {inside} {after}", word.trim_end_matches(" {")))
        });
        result = set.unwrap_or(result);
    }
    result
}

fn of_iptables(host: &Host, peers: &Peers) -> Option<Filter> {
    let outputs =
        ["iptables", "iptables-save"].into_iter().flat_map(|program| host.recorded_outputs(program));
    let in_force = outputs.map(|(_, output)| output.text()).find_map(|text| closing_line(&text, peers));
    let restored = || {
        IPTABLES.iter().find_map(|(file, service, save)| {
            let seen = closing_line(&host.text(file).ok().flatten()?, peers)?;
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
    let accept = format!("sudo iptables -I INPUT -s {} -j ACCEPT", peers.net);
    let commands = [accept.as_str(), save].into_iter().filter(|command| !command.is_empty());
    Some(Filter { name: "iptables", seen, commands: commands.map(ToOwned::to_owned).collect() })
}

/// The line that refuses what no rule before it accepts, in the output of `iptables -S`, `iptables -L` or `iptables-save`.
fn closing_line(text: &str, peers: &Peers) -> Option<String> {
    let mut chain = "";
    let mut chains = Chains::default();
    // Other tables have chains of the same names, which open and close nothing here.
    let mut is_filter = true;
    for line in text.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('*') {
            is_filter = table == "filter";
        }
        if !is_filter {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Chain", name, ..] => {
                chain = name;
                if line.contains("(policy DROP") {
                    chains.close(name, line.to_owned());
                }
            }
            ["-P", name, "DROP"] => chains.close(name, line.to_owned()),
            ["-A", name, ref rule @ ..] => {
                if let Some(rule) = of_options(rule) {
                    chains.add(name, rule, line.to_owned());
                }
            }
            [name, "DROP", ..] if name.starts_with(':') => {
                chains.close(name.trim_start_matches(':'), line.to_owned());
            }
            _ => {
                if let Some(rule) = of_columns(words) {
                    chains.add(chain, rule, line.to_owned());
                }
            }
        }
    }
    chains.closing("INPUT", peers)
}

fn verdict(target: &str) -> Option<Verdict> {
    match target {
        "ACCEPT" => Some(Verdict::Accept),
        "DROP" | "REJECT" => Some(Verdict::Refuse),
        // Those of the kernel that do not end a packet's way.
        "LOG" | "RETURN" | "NFLOG" | "MARK" | "CONNMARK" | "QUEUE" | "NFQUEUE" => None,
        chain => Some(Verdict::Jump(chain.to_owned())),
    }
}

/// A rule of `iptables -L`: `ACCEPT all -- 10.0.0.0/16 anywhere /* cluster */`, of `-v` with the numbers of packets and bytes
/// in front, and with the interfaces.
fn of_columns(mut words: Vec<&str>) -> Option<Rule> {
    let mut rule = Rule::default();
    if words.len() > 8 && words[0].starts_with(|letter: char| letter.is_ascii_digit()) {
        let through = words.drain(5..7).next();
        rule.through = through.filter(|name| !["*", "any"].contains(name)).map(|name| vec![name.to_owned()]);
        words.drain(..2);
    }
    let [target, "all" | "0" | "tcp" | "6", _, from, to, rest @ ..] = words.as_slice() else { return None };
    let is_any = |address: &str| matches!(address, "anywhere" | "0.0.0.0/0");
    if !is_any(to) {
        return None;
    }
    let mut rest = rest;
    if let ["/*", after @ ..] = rest {
        let end = after.iter().position(|word| *word == "*/")?;
        rest = &after[end + 1..];
    }
    let is_conditional = !rest.is_empty() && !rest[0].starts_with("reject-with");
    if is_conditional || words[1] != "all" && words[1] != "0" && ["DROP", "REJECT"].contains(target) {
        return None;
    }
    rule.from = (!is_any(from)).then(|| vec![(*from).to_owned()]);
    // Without `-v` the list does not show interfaces: what accepts everything is mostly a rule for `lo`.
    if *target == "ACCEPT" && rule.from.is_none() && rule.through.is_none() {
        return None;
    }
    rule.verdict = verdict(target)?;
    Some(rule)
}

/// A rule such as `-s 10.0.0.0/16 -p tcp -m comment --comment "cluster" -j ACCEPT` that is about a network or an interface
/// alone, whatever the port.
fn of_options(options: &[&str]) -> Option<Rule> {
    let mut rule = Rule::default();
    let mut words = options.iter().copied();
    while let Some(word) = words.next() {
        match (word, words.next()) {
            ("-s", Some(value)) => rule.from = Some(vec![value.to_owned()]),
            ("--src-range", Some(value)) => rule.from = Some(vec![value.to_owned()]),
            ("-i", Some(value)) => rule.through = Some(vec![value.to_owned()]),
            // Ranks choose ports of the kernel's range, from 32768 on.
            ("--dport" | "--dports", Some(ports)) if covers_ranks(ports) => {}
            ("-p", Some("tcp" | "all"))
            | ("-m", Some("tcp" | "multiport" | "comment" | "iprange" | "state" | "conntrack")) => {}
            ("--state" | "--ctstate", Some(states)) if states.split(',').any(|state| state == "NEW") => {}
            ("--comment", Some(value)) => {
                let is_open = value.starts_with('"') && (value.len() == 1 || !value.ends_with('"'));
                while is_open && words.next().is_some_and(|word| !word.ends_with('"')) {}
            }
            ("-j" | "-g", Some(target)) => {
                rule.verdict = verdict(target)?;
                let of_ports = options.iter().any(|option| option.starts_with("--dport"));
                return (rule.verdict != Verdict::Refuse || !of_ports).then_some(rule);
            }
            _ => return None,
        }
    }
    None
}

/// Whether ports, `1024:65535` or `22,1024:65535`, are all that ranks may choose.
fn covers_ranks(ports: &str) -> bool {
    ports.split(',').any(|range| {
        let Some((first, last)) = range.split_once([':', '-']) else { return false };
        let number = |text: &str, missing: u32| match text {
            "" => Some(missing),
            text => text.trim().parse::<u32>().ok(),
        };
        number(first, 0).is_some_and(|first| first <= 29_500)
            && number(last, 65_535).is_some_and(|last| last >= 60_999)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two machines; this one is 10.0.0.7, and machine 0 is 10.0.0.6.
    fn peers() -> Peers {
        Peers {
            net: "10.0.0.0/24".to_owned(),
            interface: Some("eth1".to_owned()),
            master: "10.0.0.6".parse().ok(),
            others: 1,
        }
    }

    #[test]
    fn a_policy_or_the_last_rule_closes_a_chain() {
        let text = "#!/usr/sbin/nft -f\nflush ruleset\ntable inet filter {\n\tchain input {\n\
            \t\ttype filter hook input priority filter; policy drop;\n\t\tct state established accept\n\t}\n\
            \tchain cluster {\n\t\taccept\n\t}\n\tchain others {\n\t\tip saddr 10.9.0.0/16 accept\n\t}\n\
            \tchain forward {\n\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n";
        let chain = closed_chain(text, &peers()).unwrap();
        assert_eq!((chain.table.as_str(), chain.name.as_str()), ("inet filter", "input"));
        let open = "table inet filter {\n chain input {\n type filter hook input priority 0;\n }\n chain forward {\n\
            type filter hook forward priority 0; policy drop;\n }\n}\n";
        assert_eq!(closed_chain(open, &peers()), None);
        for (rule, is_open) in [
            ("ip saddr 10.0.0.0/8 accept", true),
            ("ip saddr { 192.168.0.0/16, 10.0.0.0/8 } counter packets 1 bytes 60 accept", true),
            ("ip saddr @cluster accept", true),
            ("iifname \"ib0\" accept", false),
            ("iifname \"eth*\" accept", true),
            ("iifname != \"eth0\" accept", true),
            ("iifname \"eth1\" ip saddr 10.0.0.0/24 accept", true),
            ("iifname \"eth0\" ip saddr 10.0.0.0/24 accept", false),
            ("meta l4proto { tcp, udp } ip saddr 10.0.0.0/24 accept", true),
            ("ip saddr 10.0.0.1-10.0.0.254 accept", true),
            ("ip saddr 10.0.0.6 accept", true),
            ("ip saddr { 10.0.0.6, 10.0.0.8 } accept", true),
            ("ip saddr 10.0.0.0/24 jump cluster", true),
            ("jump others", false),
            ("iif { \"lo\", \"eth1\" } accept", true),
            ("iif \"lo\" accept", false),
            ("ip saddr 192.168.0.9 accept", false),
            ("ip saddr 192.168.0.0/16 accept", false),
            ("ip saddr 10.0.0.0/8 tcp dport 22 accept", false),
        ] {
            let found = closed_chain(&text.replace("ct state established accept", rule), &peers());
            assert_eq!(found.is_none(), is_open, "{rule}");
        }
        // What one table accepts, another may drop.
        let docker = "table ip other {\n chain INPUT {\n type filter hook input priority 0; policy accept;\n\
            ip saddr 10.0.0.0/24 accept\n }\n}\n";
        assert!(closed_chain(&format!("{text}{docker}"), &peers()).is_some());
    }

    #[test]
    fn a_rule_of_iptables_opens_a_network_or_an_interface() {
        for (rule, is_open) in [
            ("-A INPUT -s 10.0.0.0/16 -j ACCEPT", true),
            ("-A INPUT -s 10.0.0.0/16 -p tcp -j ACCEPT", true),
            ("-A INPUT -s 10.0.0.0/16 -m conntrack --ctstate NEW -j ACCEPT", true),
            ("-A INPUT -s 10.0.0.0/16 -m comment --comment \"our own cluster\" -j ACCEPT", true),
            ("-A INPUT -i eth1 -j ACCEPT", true),
            ("-A INPUT -i lo -j ACCEPT", false),
            ("-A INPUT -i eth0 -j ACCEPT", false),
            ("-A INPUT -s 10.0.0.6/32 -j ACCEPT", true),
            ("-A INPUT -m iprange --src-range 10.0.0.1-10.0.0.9 -j ACCEPT", true),
            ("-A INPUT -j CLUSTER\n-A CLUSTER -s 10.0.0.0/24 -j ACCEPT", true),
            ("-A INPUT -j CLUSTER\n-A CLUSTER -p tcp --dport 22 -j ACCEPT", false),
            ("-A INPUT -s 10.9.0.9/32 -j ACCEPT", false),
            ("-A INPUT -s 172.16.0.0/12 -j ACCEPT", false),
            ("-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT", false),
            ("-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT", false),
        ] {
            assert_eq!(
                closing_line(&format!("-P INPUT DROP\n{rule}\n"), &peers()).is_none(),
                is_open,
                "{rule}"
            );
        }
        let listed = "Chain INPUT (policy DROP)\ntarget prot opt source destination\n\
            ACCEPT all -- 10.0.0.0/16 anywhere\n";
        assert_eq!(closing_line(listed, &peers()), None);
        assert!(closing_line(&listed.replace("10.0.0.0/16", "anywhere"), &peers()).is_some());
        for (end, is_open) in
            [("/* own cluster */", true), ("/* ssh */ tcp dpt:22", false), ("state NEW", false)]
        {
            let listed = listed.replace("anywhere\n", &format!("anywhere {end}\n"));
            assert_eq!(closing_line(&listed, &peers()).is_none(), is_open, "{end}");
        }
    }

    #[test]
    fn iptables_closes_in_three_notations() {
        for text in [
            "-P INPUT DROP\n-P FORWARD ACCEPT\n",
            "*mangle\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\nCOMMIT\n*filter\n:INPUT DROP [0:0]\nCOMMIT\n",
            "-P INPUT ACCEPT\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n-A INPUT -p tcp -j REJECT\n",
            "-P INPUT DROP\n-A INPUT -p tcp -m multiport --dports 80,8000:8100 -j ACCEPT\n",
            "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp --dport 22 -j ACCEPT\n\
             -A INPUT -j REJECT --reject-with icmp-host-prohibited\nCOMMIT\n",
            "Chain INPUT (policy ACCEPT)\ntarget prot opt source destination\n\
             REJECT all -- anywhere anywhere reject-with icmp-host-prohibited\n",
            "Chain INPUT (policy ACCEPT 0 packets, 0 bytes)\n pkts bytes target prot opt in out source destination\n\
             12 720 REJECT 0 -- * * 0.0.0.0/0 0.0.0.0/0 reject-with icmp-host-prohibited\n",
        ] {
            assert!(closing_line(text, &peers()).is_some(), "{text}");
        }
        for text in [
            "-P INPUT ACCEPT\n-P FORWARD DROP\n-A DOCKER -j DROP\n",
            "-P INPUT DROP\n-A INPUT -p tcp -m tcp --dport 1024:65535 -j ACCEPT\n",
            "-P INPUT DROP\n-A INPUT -p tcp -m multiport --dports 22,1024:65535 -j ACCEPT\n",
            "*mangle\n:INPUT DROP [0:0]\n-A INPUT -j DROP\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n",
            "Chain INPUT (policy ACCEPT)\nDROP all -- 203.0.113.7 anywhere\nChain FORWARD (policy DROP)\n",
            "-P INPUT DROP\n-A INPUT -s 10.0.0.0/16 -j ACCEPT\n",
        ] {
            assert_eq!(closing_line(text, &peers()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_rules_are_read(text in "(table |inet |chain |input|hook |policy drop|;|\\{|-A INPUT |-j |REJECT|Chain |all|\\PC|\n| ){0,40}") {
            let _ = (closed_chain(&text, &peers()), closing_line(&text, &peers()));
        }
    }
}
