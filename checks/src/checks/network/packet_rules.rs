//! Rules of the kernel's packet filter, in whatever notation, and whether they let in the other machines of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::leads_out;

/// The other machines of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Peers {
    /// Their network, such as `10.0.0.0/24`.
    pub(super) net: String,
    /// The interface of this machine in that network.
    pub(super) interface: Option<String>,
    pub(super) master: Option<Ipv4Addr>,
    /// How many they are.
    pub(super) others: usize,
}

/// A rule that looks at the source and the interface alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) from: Option<Vec<String>>,
    pub(super) through: Option<Vec<String>>,
    pub(super) not_through: Option<Vec<String>>,
    pub(super) verdict: Verdict,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    #[default]
    Accept,
    Refuse,
    /// What another chain says.
    Jump(String),
}

/// Whom a rule is about.
enum About {
    All,
    /// These machines.
    Some(BTreeSet<u32>),
    Nobody,
}

/// A chain: its rules with their lines, and the line of a policy that refuses the rest.
#[derive(Debug, Default)]
struct Chain {
    rules: Vec<(Rule, String)>,
    policy: Option<String>,
}

/// The chains of a packet filter, by their names.
#[derive(Debug, Default)]
pub(super) struct Chains(BTreeMap<String, Chain>);

/// What was met on the way through the chains.
#[derive(Default)]
struct Walk<'a> {
    /// The machines that single rules let in.
    accepted: BTreeSet<u32>,
    seen: BTreeSet<&'a String>,
}

/// What a chain does with the packets of the other machines.
enum Fate {
    Accepted,
    Refused(String),
    /// It goes on after the chain.
    Undecided,
}

/// Chains that lead to each other are followed so far.
const DEPTH: usize = 32;

impl Chains {
    pub(super) fn add(&mut self, chain: &str, rule: Rule, line: String) {
        self.0.entry(chain.to_owned()).or_default().rules.push((rule, line));
    }

    /// The policy of a chain refuses what no rule accepts.
    pub(super) fn close(&mut self, chain: &str, line: String) {
        self.0.entry(chain.to_owned()).or_default().policy = Some(line);
    }

    /// The line by which a chain of the kernel refuses the packets of the other machines.
    pub(super) fn closing(&self, chain: &str, peers: &Peers) -> Option<String> {
        match self.fate(chain, peers, &mut Walk::default(), DEPTH) {
            Fate::Refused(line) => Some(line),
            Fate::Accepted => None,
            Fate::Undecided => self.0.get(chain)?.policy.clone(),
        }
    }

    /// What refuses some packets only, or those that another chain did not send back, is not counted: a rule that is not
    /// understood may have let in the other machines before.
    fn fate<'a>(&'a self, chain: &str, peers: &Peers, walk: &mut Walk<'a>, depth: usize) -> Fate {
        let Some((name, chain)) = self.0.get_key_value(chain).filter(|_| depth > 0) else {
            return Fate::Undecided;
        };
        // What a chain accepts is known after the first time.
        if !walk.seen.insert(name) {
            return Fate::Undecided;
        }
        let is_certain =
            |rule: &Rule| peers.interface.is_some() || rule.through.is_none() && rule.not_through.is_none();
        for (rule, line) in &chain.rules {
            match (peers.about(rule), &rule.verdict) {
                (About::All, Verdict::Accept) => return Fate::Accepted,
                (About::All, Verdict::Refuse) if rule.from.is_none() && is_certain(rule) => {
                    return Fate::Refused(line.clone());
                }
                (About::Some(machines), Verdict::Accept) => {
                    walk.accepted.extend(machines);
                    if peers.are_all_in(&walk.accepted) {
                        return Fate::Accepted;
                    }
                }
                (About::All | About::Some(_), Verdict::Jump(next)) => {
                    if matches!(self.fate(next, peers, walk, depth - 1), Fate::Accepted) {
                        return Fate::Accepted;
                    }
                }
                (_, Verdict::Refuse) | (About::Nobody, _) => {}
            }
        }
        Fate::Undecided
    }
}

/// Whether rules that accept, and a policy that refuses everything else, let in the other machines.
pub(super) fn let_in(rules: Vec<Rule>, peers: &Peers) -> bool {
    const CHAIN: &str = "input";
    let mut chains = Chains::default();
    chains.close(CHAIN, String::new());
    rules.into_iter().for_each(|rule| chains.add(CHAIN, rule, String::new()));
    chains.closing(CHAIN, peers).is_none()
}

impl Peers {
    fn about(&self, rule: &Rule) -> About {
        let is_ours = |name: &String| match (&self.interface, name.strip_suffix(['*', '+'])) {
            (Some(own), Some(begin)) => own.starts_with(begin),
            (Some(own), None) => own == name,
            (None, begin) => leads_out(begin.unwrap_or(name)),
        };
        let is_through = rule.through.as_ref().is_none_or(|names| names.iter().any(is_ours))
            && rule.not_through.as_ref().is_none_or(|names| !names.iter().any(is_ours));
        if !is_through {
            return About::Nobody;
        }
        let Some(from) = &rule.from else { return About::All };
        let mut machines = BTreeSet::new();
        for from in from {
            match self.of_source(from) {
                About::All => return About::All,
                About::Some(more) => machines.extend(more),
                About::Nobody => {}
            }
        }
        if machines.is_empty() { About::Nobody } else { About::Some(machines) }
    }

    /// Whose packets have this source. A name of a set, of which the machines are unknown, counts.
    fn of_source(&self, from: &str) -> About {
        if from.starts_with(['$', '@']) {
            return About::All;
        }
        let own = network(&self.net);
        if let Some((first, last)) = from.split_once('-') {
            let bits = |text: &str| text.parse::<Ipv4Addr>().ok().map(Ipv4Addr::to_bits);
            let (Some(first), Some(last)) = (bits(first), bits(last)) else { return About::Nobody };
            let is_near = own.is_none_or(|own| is_within(first, own) || is_within(last, own));
            return if is_near && first < last { About::All } else { About::Nobody };
        }
        let Some((from, length)) = network(from) else { return About::Nobody };
        match own {
            Some(own) if length >= 31 => {
                if is_within(from, own) {
                    About::Some(BTreeSet::from([from]))
                } else {
                    About::Nobody
                }
            }
            None if length >= 31 => About::Nobody,
            Some((own, own_length)) if !is_within(from, (own, length.min(own_length))) => About::Nobody,
            _ => About::All,
        }
    }

    /// Whether these machines are those of the run. On any other machine than the first, the first has to be among them.
    fn are_all_in(&self, machines: &BTreeSet<u32>) -> bool {
        self.master.is_some_and(|master| machines.contains(&master.to_bits()))
            || machines.len() >= self.others.max(1)
    }
}

fn is_within(address: u32, (net, length): (u32, u32)) -> bool {
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    address & mask == net & mask
}

/// `10.0.0.0/16`, with its length of 32 if there is none.
fn network(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    let length = length.parse().ok().filter(|length| *length <= 32)?;
    Some((address.parse::<Ipv4Addr>().ok()?.to_bits(), length))
}
