//! A bounded pool of page-locked memory for copies to GPUs. Page-locked memory makes a copy fast and asynchronous, but the
//! system has little of it, in WSL about 1 GB in all, and libtorch never gives back what it has locked. So buffers are
//! used again, and their sum stays below a limit that the program sets. If the limit is reached or the system refuses,
//! copies use ordinary memory, which the host waits for, and the program can tell its user once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The budget of this process.
static BUDGET: Budget = Budget::new(u64::MAX);

/// Limits the page-locked memory for copies to GPUs, in bytes, of this process. What is locked already stays so.
pub fn limit_page_locked_memory(bytes: u64) {
    BUDGET.limit.store(bytes, Ordering::Relaxed);
}

/// Why copies to a GPU use memory that is not page-locked, once after the first of them.
pub fn take_page_locked_notice() -> Option<String> {
    BUDGET.take_notice()
}

/// The budget that pools draw on.
pub(crate) fn budget() -> &'static Budget {
    &BUDGET
}

/// How much memory pools may lock and have locked.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: AtomicU64,
    locked: AtomicU64,
    /// The system has refused; it is not asked again.
    refused: AtomicBool,
    /// Whether there was a reason to tell.
    told: AtomicBool,
    notice: Mutex<Option<String>>,
}

impl Budget {
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit: AtomicU64::new(limit),
            locked: AtomicU64::new(0),
            refused: AtomicBool::new(false),
            told: AtomicBool::new(false),
            notice: Mutex::new(None),
        }
    }

    fn take_notice(&self) -> Option<String> {
        self.notice.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps the first reason.
    fn tell(&self, reason: impl FnOnce() -> String) {
        if !self.told.swap(true, Ordering::Relaxed) {
            *self.notice.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason());
        }
    }

    /// Locks this many bytes with `lock`, unless the limit forbids it or the system refuses.
    fn lock<B, E: std::fmt::Display>(&self, bytes: u64, lock: impl FnOnce(u64) -> Result<B, E>) -> Option<B> {
        if self.refused.load(Ordering::Relaxed) {
            return None;
        }
        let limit = self.limit.load(Ordering::Relaxed);
        let more = |locked: u64| locked.checked_add(bytes).filter(|&sum| sum <= limit);
        if self.locked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            self.tell(|| {
                format!("batches need more page-locked memory than the limit of {} MiB", limit >> 20)
            });
            return None;
        }
        match lock(bytes) {
            Ok(buffer) => Some(buffer),
            Err(error) => {
                self.locked.fetch_sub(bytes, Ordering::Relaxed);
                self.refused.store(true, Ordering::Relaxed);
                let error = error.to_string();
                let reason = error.lines().next().unwrap_or_default();
                self.tell(|| {
                    format!("the system refuses {} MiB of page-locked memory: {reason}", bytes >> 20)
                });
                None
            }
        }
    }
}

/// Idle buffers of page-locked memory, and buffers whose last copy may still be running. `B` is a buffer, `U` tells when a use
/// has ended. Whoever takes a buffer must give it back, so that two threads never use the same one.
#[derive(Debug)]
pub(crate) struct Pool<B, U> {
    buffers: Vec<Buffer<B, U>>,
}

/// A buffer that is not in its pool, or waits there for the end of its last use.
#[derive(Debug)]
pub(crate) struct Buffer<B, U> {
    bytes: u64,
    memory: B,
    in_use: Option<U>,
}

impl<B, U> Buffer<B, U> {
    /// Its memory, which has at least as many bytes as were asked for.
    pub(crate) fn memory(&self) -> &B {
        &self.memory
    }
}

impl<B, U> Pool<B, U> {
    pub(crate) const fn new() -> Self {
        Self { buffers: Vec::new() }
    }

    /// Takes a buffer of at least this many bytes that is not in use; `None` if there is none and no more memory can be
    /// locked. `has_ended` tells whether a use has ended, and does not wait. `lock` makes a buffer.
    pub(crate) fn take<E: std::fmt::Display>(
        &mut self,
        bytes: u64,
        budget: &Budget,
        has_ended: impl Fn(&U) -> bool,
        lock: impl FnOnce(u64) -> Result<B, E>,
    ) -> Option<Buffer<B, U>> {
        for buffer in &mut self.buffers {
            buffer.in_use.take_if(|user| has_ended(user));
        }
        let fits = |buffer: &Buffer<B, U>| buffer.in_use.is_none() && buffer.bytes >= bytes;
        let smallest = self
            .buffers
            .iter()
            .enumerate()
            .filter(|(_, buffer)| fits(buffer))
            .min_by_key(|(_, buffer)| buffer.bytes);
        if let Some((number, _)) = smallest {
            return Some(self.buffers.swap_remove(number));
        }
        // libtorch locks powers of two.
        let bytes = bytes.checked_next_power_of_two()?;
        let memory = budget.lock(bytes, lock)?;
        Some(Buffer { bytes, memory, in_use: None })
    }

    /// Takes a buffer back, which is in use until `user` has ended, if there is one.
    pub(crate) fn give_back(&mut self, buffer: Buffer<B, U>, user: Option<U>) {
        self.buffers.push(Buffer { in_use: user, ..buffer });
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A system that locks memory until it refuses, and a pool of buffers with their number and size.
    struct Machine {
        budget: Budget,
        pool: Pool<(usize, u64), Rc<Cell<bool>>>,
        /// What the system gives before it refuses.
        has: u64,
        asked: RefCell<Vec<u64>>,
    }

    impl Machine {
        fn new(limit: u64, has: u64) -> Self {
            Self { budget: Budget::new(limit), pool: Pool::new(), has, asked: RefCell::default() }
        }

        /// Copies this many bytes. Returns the buffer and the flag that ends the copy; `None` without page-locked memory.
        fn copy(&mut self, bytes: u64) -> Option<(usize, Rc<Cell<bool>>)> {
            let lock = |bytes: u64| {
                self.asked.borrow_mut().push(bytes);
                let asked = self.asked.borrow();
                let number = asked.len() - 1;
                let fits = asked.iter().sum::<u64>() <= self.has;
                if fits { Ok((number, bytes)) } else { Err("CUDA error: out of memory\nat some line") }
            };
            let buffer = self.pool.take(bytes, &self.budget, |ended| ended.get(), lock)?;
            let (number, size) = *buffer.memory();
            assert!(size >= bytes);
            let ended = Rc::new(Cell::new(false));
            self.pool.give_back(buffer, Some(Rc::clone(&ended)));
            Some((number, ended))
        }
    }

    #[test]
    fn buffers_are_used_again_when_their_copy_has_ended() {
        let mut machine = Machine::new(u64::MAX, u64::MAX);
        let (first, ended) = machine.copy(3 * MIB).unwrap();
        let (second, _) = machine.copy(3 * MIB).unwrap();
        assert_ne!(first, second, "the first copy is on its way");
        ended.set(true);
        assert_eq!(machine.copy(4 * MIB).unwrap().0, first, "a buffer has a power of two");
        assert_eq!(*machine.asked.borrow(), [4 * MIB, 4 * MIB]);
        assert_eq!(machine.budget.take_notice(), None);
    }

    #[test]
    fn a_buffer_that_is_taken_is_not_given_to_another() {
        let mut machine = Machine::new(u64::MAX, u64::MAX);
        let lock = |bytes: u64| Ok::<_, String>((0, bytes));
        let taken = machine.pool.take(MIB, &machine.budget, |ended| ended.get(), lock).unwrap();
        assert!(machine.pool.buffers.is_empty());
        // Its copy could not begin.
        machine.pool.give_back(taken, None);
        assert_eq!(machine.copy(MIB).unwrap().0, 0, "it is free at once");
        assert!(machine.asked.borrow().is_empty());
    }

    #[test]
    fn the_smallest_buffer_that_suffices_is_used() {
        let mut machine = Machine::new(u64::MAX, u64::MAX);
        let copies = [8, 2, 4].map(|size| machine.copy(size * MIB).unwrap());
        copies.iter().for_each(|(_, ended)| ended.set(true));
        assert_eq!(machine.copy(3 * MIB).unwrap().0, 2);
    }

    #[test]
    fn beyond_the_limit_copies_use_other_memory_and_that_is_told_once() {
        let mut machine = Machine::new(8 * MIB, u64::MAX);
        let (_, ended) = machine.copy(4 * MIB).unwrap();
        assert!(machine.copy(4 * MIB).is_some());
        assert!(machine.copy(MIB).is_none());
        assert!(machine.copy(MIB).is_none());
        assert_eq!(machine.asked.borrow().len(), 2, "the system is not asked for more");
        assert_eq!(
            machine.budget.take_notice().as_deref(),
            Some("batches need more page-locked memory than the limit of 8 MiB")
        );
        assert_eq!(machine.budget.take_notice(), None);
        ended.set(true);
        assert!(machine.copy(MIB).is_some(), "a buffer is free again");
    }

    #[test]
    fn a_system_that_refuses_is_not_asked_again() {
        let mut machine = Machine::new(u64::MAX, 4 * MIB);
        let (_, ended) = machine.copy(4 * MIB).unwrap();
        assert!(machine.copy(2 * MIB).is_none());
        assert!(machine.copy(MIB).is_none());
        assert_eq!(machine.asked.borrow().len(), 2);
        assert_eq!(
            machine.budget.take_notice().as_deref(),
            Some("the system refuses 2 MiB of page-locked memory: CUDA error: out of memory")
        );
        assert_eq!(machine.budget.take_notice(), None);
        ended.set(true);
        assert!(machine.copy(MIB).is_some(), "what it gave stays");
    }
}
