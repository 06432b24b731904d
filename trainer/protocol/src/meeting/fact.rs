//! What must be equal on all machines of a run, and how a difference is named.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::names::named;

/// The fact that a machine may leave out: one that cannot use NCCL does not know its version, and the run then
/// uses gloo.
pub const NCCL: &str = "the version of NCCL";

/// How the names of hyperparameters begin.
pub const HYPERPARAMETER: &str = "the hyperparameter ";

/// Something that must be equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is, as messages name it.
    pub what: String,
    /// Its value on this machine.
    pub value: String,
}

/// The first fact in which a machine differs from the master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub what: String,
    /// Its value on the master.
    pub own: String,
    /// The name of the master.
    pub master: String,
    /// Its value on the other machine.
    pub theirs: String,
    /// The number and the name of the other machine.
    pub member: (usize, String),
}

/// Compares the facts of a machine with those of the master.
pub fn first_difference(
    (master, own): (&str, &[Fact]),
    (machine, host, other): (usize, &str, &[Fact]),
) -> Option<Difference> {
    own.iter().find_map(|fact| {
        let there = other.iter().find(|there| there.what == fact.what);
        if fact.what == NCCL && there.is_none() {
            return None;
        }
        let theirs = there.map_or("unknown", |there| &there.value);
        (theirs != fact.value).then(|| Difference {
            what: fact.what.clone(),
            own: fact.value.clone(),
            master: master.to_owned(),
            theirs: theirs.to_owned(),
            member: (machine, host.to_owned()),
        })
    })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, own, master, theirs, member: (machine, host) } = self;
        let several = what.starts_with("the names") || what.ends_with("names");
        let verb = if several { "differ" } else { "differs" };
        write!(f, "{what} {verb}: {own} on {}, {theirs} on {}", named(0, master), named(*machine, host))
    }
}

impl Difference {
    /// What to do about it.
    pub(super) fn remedy(&self) -> &'static str {
        match self.what.as_str() {
            "the version of yolo" => "install the same release on all machines",
            "libtorch" => {
                "install the same variant on all machines, for example with `yolo setup --libtorch cu130`"
            }
            "--resume" => "give all machines --resume, or none; only machine 0 needs the run",
            NCCL => "use libtorch's own NCCL on all machines, or give all the same version with --nccl",
            what if what.starts_with(HYPERPARAMETER) => "give all machines the same --hyp, or none",
            what if what.starts_with("--") => {
                "give all machines the same options, except for --node-rank, devices and paths"
            }
            _ => "copy the data set of one machine to the others",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(what: &str, value: &str) -> Fact {
        Fact { what: what.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn a_difference_names_the_machine_and_both_values() {
        let own = [fact("libtorch", "cpu"), fact("--epochs", "3")];
        let other = [fact("libtorch", "cpu"), fact("--epochs", "not given")];
        let compare = |other| first_difference(("a", &own), (1, "b", other));
        assert_eq!(compare(&own), None);
        let found = compare(&other).unwrap().to_string();
        assert_eq!(found, "--epochs differs: 3 on machine 0 (a), not given on machine 1 (b)");
        let found = compare(&other[..1]).unwrap().to_string();
        assert_eq!(found, "--epochs differs: 3 on machine 0 (a), unknown on machine 1 (b)");
    }

    #[test]
    fn the_version_of_nccl_is_compared_where_both_are_known() {
        let facts = |version: Option<&str>| version.map(|version| fact(NCCL, version)).into_iter().collect();
        let differ = |own, other| {
            let (own, other): (Vec<Fact>, Vec<Fact>) = (facts(own), facts(other));
            first_difference(("a", &own), (1, "b", &other)).is_some()
        };
        assert!(differ(Some("2.28.9"), Some("2.30.7")));
        assert!(!differ(Some("2.28.9"), Some("2.28.9")));
        assert!(!differ(Some("2.28.9"), None) && !differ(None, Some("2.28.9")));
    }
}
