//! What to say first when NCCL cannot connect ranks on several machines, and its own setting is the reason: over
//! the loopback interface, a rank reaches only its own machine. NCCL reports a refused or lost connection then.

use yolo_base::env::NCCL_SOCKET_IFNAME;
use yolo_base::socket_interfaces::SocketInterfaces;
use yolo_plan::run::Ranks;

use crate::error::TrainError;

/// The error of a rank that could not connect to the others over NCCL, with the user's setting if it explains it.
pub(super) fn explain(ranks: &Ranks, error: TrainError) -> TrainError {
    let value = std::env::var(NCCL_SOCKET_IFNAME).unwrap_or_default();
    match is_reason(ranks, &value) {
        true => with_reason(error, &value),
        false => error,
    }
}

/// Whether this value of the variable keeps the ranks apart. If `yolo` has chosen loopback, the "machines" of the
/// run are one.
fn is_reason(ranks: &Ranks, value: &str) -> bool {
    let several = ranks.on_this_machine() < ranks.world_size;
    let is_own = ranks.variables.get(NCCL_SOCKET_IFNAME).is_some_and(|own| own == value);
    several && !is_own && SocketInterfaces::parse(value).are_only_loopback()
}

fn with_reason(error: TrainError, value: &str) -> TrainError {
    error
        .at(format_args!("{NCCL_SOCKET_IFNAME} is \"{value}\", which reaches no other machine"))
        .with_hint(format!(
            "unset {NCCL_SOCKET_IFNAME} on all machines, or name the interface that leads to the others"
        ))
        .of_this_rank()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use yolo_base::Hint as _;
    use yolo_plan::backend::Backend;
    use yolo_plan::device::Device;

    use super::*;

    /// One rank of two, on two machines or on one.
    fn ranks(here: usize) -> Ranks {
        Ranks {
            devices: vec![Device::Cuda(0)],
            further_devices: Vec::new(),
            device_memory: Vec::new(),
            first: 1,
            first_here: 0,
            here: Some(here),
            world_size: 2,
            backend: Some(Backend::Nccl),
            nccl: None,
            variables: BTreeMap::new(),
            threads: 1,
            cpus: Vec::new(),
            page_locked: None,
        }
    }

    #[test]
    fn loopback_is_the_reason_only_between_machines_and_if_the_user_chose_it() {
        assert!(is_reason(&ranks(1), "lo") && is_reason(&ranks(1), "=lo"));
        assert!(!is_reason(&ranks(2), "lo"), "all ranks are here");
        assert!(!is_reason(&ranks(1), "eth0") && !is_reason(&ranks(1), ""));
        let mut chosen = ranks(1);
        chosen.variables.insert(NCCL_SOCKET_IFNAME.to_owned(), "=lo".to_owned());
        assert!(!is_reason(&chosen, "=lo"));
    }

    #[test]
    fn the_setting_comes_before_what_nccl_says() {
        let error = tch_distributed::Error::from_tch(
            "connecting rank 1 of 2 over NCCL",
            &tch::TchError::Torch("Connection refused".to_owned()),
        );
        let error = TrainError::from(error);
        assert!(error.peer_lost());
        let error = with_reason(error, "lo");
        assert_eq!(
            error.to_string(),
            "NCCL_SOCKET_IFNAME is \"lo\", which reaches no other machine: connecting rank 1 of 2 over NCCL: \
             Connection refused"
        );
        assert!(error.hint().unwrap().starts_with("unset NCCL_SOCKET_IFNAME"));
        assert!(!error.peer_lost(), "no other rank is to blame");
    }
}
