//! Whether ufw or firewalld, although active, lets the other machines of a run in: their settings accept the whole network, or
//! all that comes through the interface of the run. Single ports that are open do not count, since ranks listen on any.

use super::packet_rules::{Peers, Rule, let_in};
use crate::facts::Host;

/// Whether ufw accepts everything from the other machines.
pub(super) fn by_ufw(host: &Host, peers: &Peers) -> bool {
    let text = |path: &str| host.text(path).ok().flatten().unwrap_or_default();
    let accepts = text("/etc/default/ufw").lines().any(|line| {
        line.trim()
            .strip_prefix("DEFAULT_INPUT_POLICY=")
            .is_some_and(|value| value.trim_matches('"') == "ACCEPT")
    });
    let status = host.command(&["ufw", "status"]).ok().flatten().map(|output| output.text());
    let status = status.or_else(|| host.recorded_output("ufw")).unwrap_or_default();
    // Only root may read it.
    let rules = text("/etc/ufw/user.rules");
    let rules = rules.lines().filter_map(of_user_rules).chain(status.lines().filter_map(of_status));
    accepts || let_in(rules.collect(), peers)
}

/// `Anywhere  ALLOW IN  10.0.0.0/24` and `Anywhere on eth1  ALLOW  Anywhere`, in the output of `ufw status`.
fn of_status(line: &str) -> Option<Rule> {
    let words: Vec<&str> = line.split_whitespace().filter(|word| !matches!(*word, "IN" | "(v6)")).collect();
    let (through, rest) = match words[..] {
        ["Anywhere", "on", interface, ref rest @ ..] => (Some(interface), rest),
        ["Anywhere", ref rest @ ..] => (None, rest),
        _ => return None,
    };
    let [action, from, ..] = *rest else { return None };
    let from = (from != "Anywhere").then_some(from);
    (action == "ALLOW").then(|| rule(from, through))
}

/// `-A ufw-user-input -s 10.0.0.0/24 -j ACCEPT`
fn of_user_rules(line: &str) -> Option<Rule> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["-A", "ufw-user-input", "-s", from, "-j", "ACCEPT"] => Some(rule(Some(from), None)),
        ["-A", "ufw-user-input", "-i", interface, "-j", "ACCEPT"] => Some(rule(None, Some(interface))),
        ["-A", "ufw-user-input", "-i", interface, "-s", from, "-j", "ACCEPT"] => {
            Some(rule(Some(from), Some(interface)))
        }
        _ => None,
    }
}

fn rule(from: Option<&str>, through: Option<&str>) -> Rule {
    let list = |name: &str| vec![name.to_owned()];
    Rule { from: from.map(list), through: through.map(list), ..Rule::default() }
}

/// Where firewalld keeps the zones that were changed on this machine.
const ZONES: &str = "/etc/firewalld/zones";

/// Whether firewalld accepts everything from the other machines.
pub(super) fn by_firewalld(host: &Host, peers: &Peers) -> bool {
    let zones: Vec<(String, String)> = host
        .folder(ZONES)
        .ok()
        .flatten()
        .unwrap_or_default()
        .into_iter()
        .filter_map(|file| {
            let text = host.text(&format!("{ZONES}/{file}")).ok()??;
            Some((file.strip_suffix(".xml")?.to_owned(), text))
        })
        .collect();
    let mut rules: Vec<Rule> = zones.iter().flat_map(|(name, text)| of_zone(name, text)).collect();
    for (_, output) in host.recorded_outputs("firewall-cmd") {
        rules.extend(of_list(&output.text()));
    }
    let conf = host.text("/etc/firewalld/firewalld.conf").ok().flatten().unwrap_or_default();
    let default = conf.lines().find_map(|line| line.trim().strip_prefix("DefaultZone=")).map(str::trim);
    // The default zone has the interfaces that no other zone has.
    let has_own_zone = peers.interface.as_ref().is_none_or(|own| {
        zones.iter().any(|(name, text)| {
            name != "trusted" && values(text, "<interface ", "name").any(|one| one == own)
        })
    });
    if default == Some("trusted") && !has_own_zone {
        return true;
    }
    let_in(rules, peers)
}

/// The value of an attribute of each such element: `<source address="10.0.0.0/24"/>`.
fn values<'a>(text: &'a str, element: &'a str, attribute: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(element).skip(1).filter_map(move |rest| {
        let (_, value) = rest.split_once('>')?.0.split_once(attribute)?;
        let value = value.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|letter| matches!(letter, '"' | '\''))?;
        value.get(1..)?.split(quote).next()
    })
}

/// What a zone accepts as a whole: its sources and interfaces if it is trusted, and those of its rules that name no port.
fn of_zone(name: &str, text: &str) -> Vec<Rule> {
    let is_trusted = name == "trusted" || values(text, "<zone", "target").any(|target| target == "ACCEPT");
    let mut outside = String::new();
    let mut rules = Vec::new();
    for (place, part) in text.split("<rule").enumerate() {
        if place == 0 {
            outside.push_str(part);
            continue;
        }
        let (inside, after) = part.split_once("</rule>").unwrap_or((part, ""));
        let is_narrow = ["<port", "<service", "<protocol", "<destination", "<icmp", "<source-port", "invert"]
            .iter()
            .any(|word| inside.contains(word));
        if inside.contains("<accept") && !is_narrow {
            rules.extend(values(inside, "<source ", "address").map(|from| rule(Some(from), None)));
        }
        outside.push_str(after);
    }
    if is_trusted {
        rules.extend(values(&outside, "<source ", "address").map(|from| rule(Some(from), None)));
        rules.extend(values(&outside, "<interface ", "name").map(|name| rule(None, Some(name))));
    }
    rules
}

/// The zone `trusted` in the output of `firewall-cmd --get-active-zones` or `--list-all-zones`.
fn of_list(text: &str) -> Vec<Rule> {
    let mut is_trusted = false;
    let mut rules = Vec::new();
    for line in text.lines() {
        if !line.starts_with(char::is_whitespace) && !line.trim().is_empty() {
            is_trusted = line.split_whitespace().next() == Some("trusted");
        } else if let Some((key, list)) = line.trim().split_once(':').filter(|_| is_trusted) {
            match key {
                "interfaces" => rules.extend(list.split_whitespace().map(|name| rule(None, Some(name)))),
                "sources" => rules.extend(list.split_whitespace().map(|from| rule(Some(from), None))),
                _ => {}
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(rules: impl IntoIterator<Item = Rule>) -> Vec<String> {
        let one = |list: Option<Vec<String>>| list.map_or_else(|| "-".to_owned(), |list| list.join(","));
        rules.into_iter().map(|rule| format!("{} {}", one(rule.from), one(rule.through))).collect()
    }

    #[test]
    fn rules_for_whole_networks_and_interfaces_count() {
        let status = "Status: active\n\nTo   Action  From\n22/tcp  ALLOW  Anywhere\nAnywhere   ALLOW IN    10.0.0.0/24\n\
            Anywhere on eth1  ALLOW  Anywhere\nAnywhere DENY 10.1.0.0/24\n";
        assert_eq!(shown(status.lines().filter_map(of_status)), ["10.0.0.0/24 -", "- eth1"]);
        let file =
            "-A ufw-user-input -p tcp --dport 22 -j ACCEPT\n-A ufw-user-input -s 10.0.0.0/24 -j ACCEPT\n";
        assert_eq!(shown(file.lines().filter_map(of_user_rules)), ["10.0.0.0/24 -"]);
    }

    #[test]
    fn a_zone_accepts_what_is_trusted_and_rules_without_ports() {
        let trusted =
            "<zone target=\"ACCEPT\"><source address=\"10.0.0.0/24\"/><interface name='eth1'/></zone>";
        assert_eq!(shown(of_zone("trusted", trusted)), ["10.0.0.0/24 -", "- eth1"]);
        let public = "<zone><service name=\"ssh\"/><source address=\"10.2.0.0/16\"/>\n<rule family=\"ipv4\">\n\
            <source address=\"192.168.100.0/24\"/><accept/></rule>\n\
            <rule><source address=\"10.9.0.0/16\"/><port port=\"22\" protocol=\"tcp\"/><accept/></rule></zone>";
        assert_eq!(shown(of_zone("public", public)), ["192.168.100.0/24 -"]);
        let active =
            "public (default)\n  interfaces: eno1\ntrusted\n  interfaces: ib0\n  sources: 10.0.0.0/24\n";
        assert_eq!(shown(of_list(active)), ["- ib0", "10.0.0.0/24 -"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(<rule|</rule>|<source |<accept|address=|\"|'|>|Anywhere|ALLOW| on |trusted|sources:|\n| |\\PC){0,16}") {
            let _ = (of_zone("x", &text), of_list(&text));
            let _: Vec<Rule> = text.lines().filter_map(of_status).chain(text.lines().filter_map(of_user_rules)).collect();
        }
    }
}
