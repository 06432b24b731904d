//! The place of this machine in a run on several: how many there are, which one this is, and where they meet.

use std::time::Duration;

use yolo_base::join;

use super::error::MachinesError;

/// The port of the master unless the user names one, as in torchrun.
const PORT: u16 = 29_500;
/// How long machines wait for each other, unless the user sets another limit.
const PATIENCE: Duration = Duration::from_secs(600);

/// The place of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Machines of the run, at least 2.
    pub(crate) machines: usize,
    /// The number of this one.
    pub(crate) number: usize,
    /// The host name or address of machine 0.
    pub(crate) host: String,
    /// The port on which machine 0 waits for the others.
    pub(crate) port: u16,
}

impl Place {
    /// The place that the options name; `None` for a run on one machine.
    ///
    /// # Errors
    /// When an option is missing, has no effect or is out of range.
    pub(crate) fn of_options(
        machines: Option<usize>,
        number: Option<usize>,
        host: Option<&str>,
        port: Option<u16>,
    ) -> Result<Option<Self>, MachinesError> {
        let usage = |what: String, hint: &str| Err(MachinesError::Options { what, hint: hint.to_owned() });
        // Scripts for any number of machines name the only one, too.
        let only = machines == Some(1) && number == Some(0);
        let machines = machines.unwrap_or(1);
        if machines < 2 {
            let given = [
                ("--node-rank", number.is_some() && !only),
                ("--master-addr", host.is_some()),
                ("--master-port", port.is_some()),
            ];
            return match given.iter().find(|(_, given)| *given) {
                Some((option, _)) => usage(
                    format!("{option} is given, but the run has one machine"),
                    "add --nnodes with the number of machines, or omit the option",
                ),
                None => Ok(None),
            };
        }
        let Some(number) = number else {
            return usage(
                format!("--nnodes {machines} needs --node-rank, the number of this machine"),
                "give each machine a number of its own, from 0; machine 0 is the one of --master-addr",
            );
        };
        if number >= machines {
            return usage(
                format!(
                    "--node-rank {number} is not a number from 0 to {}, as --nnodes is {machines}",
                    machines - 1
                ),
                "give each machine a number of its own, from 0",
            );
        }
        let Some(host) = host.map(str::trim).filter(|host| !host.is_empty()) else {
            return usage(
                format!("--nnodes {machines} needs --master-addr, the host name or address of machine 0"),
                "give all machines the same address, one at which they reach machine 0",
            );
        };
        let has_port = host.contains(':') && host.parse::<std::net::Ipv6Addr>().is_err();
        if has_port || host.contains('/') {
            return usage(
                format!("--master-addr {host} is more than a host name or an address"),
                "name only the host, and give its port with --master-port",
            );
        }
        Ok(Some(Self { machines, number, host: host.to_owned(), port: port.unwrap_or(PORT) }))
    }

    /// Whether this machine is the master.
    pub(crate) fn is_master(&self) -> bool {
        self.number == 0
    }

    /// How long the machines wait for each other.
    pub(super) fn patience() -> Duration {
        join::limit(PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;

    fn refusal(machines: Option<usize>, number: Option<usize>, host: Option<&str>) -> String {
        let error = Place::of_options(machines, number, host, None).unwrap_err();
        assert!(error.hint().is_some());
        error.to_string()
    }

    #[test]
    fn options_that_do_not_fit_together_are_refused() {
        assert_eq!(Place::of_options(None, None, None, None).unwrap(), None);
        assert_eq!(Place::of_options(Some(1), Some(0), None, None).unwrap(), None);
        assert!(refusal(None, Some(0), None).starts_with("--node-rank is given"));
        assert!(refusal(Some(1), Some(1), None).starts_with("--node-rank is given"));
        assert!(refusal(None, Some(1), None).starts_with("--node-rank is given"));
        assert!(refusal(Some(1), None, Some("lab")).starts_with("--master-addr is given"));
        assert!(refusal(Some(2), None, Some("lab")).contains("needs --node-rank"));
        assert!(refusal(Some(2), Some(2), Some("lab")).contains("not a number from 0 to 1"));
        assert!(refusal(Some(2), Some(0), Some(" ")).contains("needs --master-addr"));
        assert!(refusal(Some(2), Some(0), Some("10.0.0.1:29500")).contains("more than a host name"));
        assert!(refusal(Some(2), Some(0), Some("tcp://lab")).contains("more than a host name"));
        assert!(Place::of_options(Some(2), Some(0), Some("fd00::1"), None).is_ok());
        let place = Place::of_options(Some(2), Some(1), Some("lab"), None).unwrap().unwrap();
        assert_eq!((place.port, place.is_master()), (29_500, false));
    }
}
