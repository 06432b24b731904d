//! What every collective does: it says what it is about to do, compares that with the other ranks, and adds
//! to an error which ranks it is due to.

use std::rc::Rc;
use std::time::Duration;

use super::agreement::agree;
use crate::error::{Error, ErrorKind, Result};
use crate::process_group::ProcessGroup;
use crate::work::RawWork;

impl ProcessGroup {
    /// Makes a call that all ranks make. `what` is its name in errors, and `details` what must be the same
    /// on all ranks.
    pub(super) fn call<T>(
        &self,
        what: &str,
        details: &str,
        timeout: Duration,
        run: impl FnOnce(&Rc<str>) -> Result<T>,
    ) -> Result<T> {
        let action: Rc<str> = self.action(what).into();
        let call = format!("{what}{details}");
        self.roll().begin(call.clone());
        let result = if self.checks_calls() && self.world() > 1 {
            agree(self, &action, &call, timeout)
        } else {
            Ok(())
        };
        let result = result.and_then(|()| run(&action)).map_err(|error| self.explain(error));
        self.roll().end();
        result
    }

    /// Makes a call that is one piece of work, and waits for its end.
    pub(super) fn call_work(
        &self,
        what: &str,
        details: &str,
        start: impl FnOnce(&Rc<str>) -> Result<RawWork>,
    ) -> Result<()> {
        self.call(what, details, self.timeout(), |action| start(action)?.wait())
    }

    /// Fails unless `rank` is one of the group.
    pub(super) fn check_rank(&self, what: &str, name: &str, rank: usize) -> Result<()> {
        if rank < self.world() {
            return Ok(());
        }
        let message = format!("the {name} must be less than the world size");
        Err(Error::new(ErrorKind::Other, self.action(what), message))
    }
}
