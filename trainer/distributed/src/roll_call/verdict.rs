//! Decides from what the ranks answered which of them a failure is due to.

use super::activity::{Cause, Moment};
use super::peer::{Peer, PeerState};

/// The ranks that explain why `own` call failed, or `None` if none stands out. Ranks that are gone come
/// first, because those that wait for them look late.
pub(super) fn verdict(own: &Moment, peers: &[Peer]) -> Option<Cause> {
    let gone = |peer: &&Peer| peer.state == PeerState::Gone;
    let silent = |peer: &&Peer| peer.state == PeerState::Silent;
    let late = |peer: &&Peer| match &peer.state {
        PeerState::Calling { number, .. } | PeerState::Elsewhere { number, .. } => *number < own.number,
        PeerState::Gone | PeerState::Silent => false,
    };
    let differs = |peer: &&Peer| match &peer.state {
        PeerState::Calling { number, call, .. } => *number == own.number && *call != own.call,
        _ => false,
    };
    let blame = |matches: &dyn Fn(&&Peer) -> bool, lost: bool| {
        let found: Vec<&Peer> = peers.iter().filter(matches).collect();
        let text: Vec<String> = found.iter().map(|peer| peer.to_string()).collect();
        (!found.is_empty()).then(|| Cause {
            ranks: found.iter().map(|peer| peer.rank).collect(),
            text: text.join("; "),
            lost,
        })
    };
    blame(&gone, true)
        .or_else(|| blame(&silent, false))
        .or_else(|| blame(&late, false))
        .or_else(|| blame(&differs, false))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SINCE: Duration = Duration::from_millis(12_340);

    fn calling(rank: usize, number: u64, call: &str) -> Peer {
        Peer { rank, state: PeerState::Calling { number, call: call.to_owned(), since: SINCE } }
    }

    fn elsewhere(rank: usize, number: u64) -> Peer {
        Peer { rank, state: PeerState::Elsewhere { number, last: "barrier".to_owned(), since: SINCE } }
    }

    fn judge(peers: &[Peer]) -> Option<(Vec<usize>, String)> {
        let own = Moment { number: 7, call: "all-reduce".to_owned(), running: true, since: Duration::ZERO };
        verdict(&own, peers).map(|cause| (cause.ranks, cause.text))
    }

    #[test]
    fn the_worst_state_is_named() {
        let gone = Peer { rank: 3, state: PeerState::Gone };
        let silent = Peer { rank: 2, state: PeerState::Silent };
        let late = elsewhere(1, 6);
        let named = |peers: &[Peer]| judge(peers).unwrap().0;
        assert_eq!(named(&[late.clone(), silent.clone(), gone]), [3]);
        assert_eq!(named(&[late.clone(), silent]), [2]);
        assert_eq!(named(&[calling(0, 7, "all-reduce"), late]), [1]);
        let text = judge(&[elsewhere(1, 6), elsewhere(2, 5)]).unwrap();
        assert_eq!(text.0, [1, 2]);
        assert_eq!(
            text.1,
            "rank 1 has made no call for 12.3 s since call 6: barrier; \
             rank 2 has made no call for 12.3 s since call 5: barrier"
        );
    }

    #[test]
    fn another_call_is_named_and_the_same_is_not() {
        let (ranks, text) = judge(&[calling(1, 7, "broadcast")]).unwrap();
        assert_eq!((ranks, text.as_str()), (vec![1], "rank 1 has been in call 7 for 12.3 s: broadcast"));
        assert_eq!(judge(&[calling(1, 7, "all-reduce"), calling(2, 8, "barrier"), elsewhere(3, 7)]), None);
    }
}
