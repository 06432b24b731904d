//! What keeps the ranks of a run together, as state machines without threads, clocks or I/O: the
//! [`Supervisor`] of a run, the [`Member`] on each further machine, which carries out what the supervisor
//! wants there, the [`RankLife`] of a rank, and how machines [meet](meeting) before all this. Each takes inputs with the time at which
//! they happened and returns actions. `yolo` and `yolo-trainer` connect them to processes, pipes and
//! signals; the tests of this crate connect the same machines to a simulated world with faults.

mod action;
mod blame;
mod clock;
mod input;
mod machines;
pub mod meeting;
mod member;
mod messages;
mod rank;
mod rank_life;
mod silence;
mod stall;
mod supervisor;
pub mod times;
mod verdict;

pub use action::{Action, Notice, StopSignal};
pub use clock::LONGEST_WAIT;
pub use input::{End, Input, Signal};
pub use member::{Member, MemberAction, MemberInput, MemberVerdict};
pub use messages::{ToMaster, ToMember};
pub use rank::{Rank, Reported};
pub use rank_life::{ORPHAN_GRACE, RankAction, RankInput, RankLife};
pub use supervisor::{Config, Supervisor};
pub use verdict::{Cause, Failure, Verdict};
