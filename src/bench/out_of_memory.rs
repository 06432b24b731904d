//! Tells a run that needed more memory than there is from one that failed for another reason.

use yolo_plan::bench_tables::Outcome;

/// Parts of the messages that mean this: of the trainer for libtorch, of the supervisor for a rank that the
/// kernel killed, and in the log of a rank whose standard library or C++ gave up.
const SIGNS: [&str; 5] = [
    "out of memory",
    "reached its memory limit",
    "memory allocation of ",
    "bad_alloc",
    "Cannot allocate memory",
];

/// The outcome of a run that ended with this error. What to do next is a part of the message, except where
/// memory ran out: that a smaller batch needs less, the table shows.
pub(crate) fn outcome_of_error(message: String, hint: Option<String>) -> Outcome {
    if SIGNS.iter().any(|sign| message.contains(sign)) {
        return Outcome::OutOfMemory { message };
    }
    let message = match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    };
    Outcome::Failed { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_ran_out_is_told_from_other_failures() {
        let ran_out =
            |text: &str| matches!(outcome_of_error(text.to_owned(), None), Outcome::OutOfMemory { .. });
        for text in [
            "CUDA out of memory: Tried to allocate 2.00 GiB",
            "rank 1 of 2 failed: out of memory: 6.1 GiB could not be allocated",
            "rank 0 of 1 was killed by signal 9 (SIGKILL): the machine ran out of memory",
            "rank 0 of 1 was killed by signal 9 (SIGKILL): its container or job reached its memory limit",
            "rank 0 of 1 was killed by signal 6 (SIGABRT): a library gave up\nthe last lines of rank0.log:\n  \
             memory allocation of 655360000 bytes failed",
        ] {
            assert!(ran_out(text), "{text}");
        }
        for text in [
            "rank 0 of 1 was killed by signal 9 (SIGKILL), which another process sent",
            "libtorch: mat1 and mat2 shapes cannot be multiplied",
        ] {
            assert!(!ran_out(text), "{text}");
        }
    }

    #[test]
    fn a_failure_says_what_to_do() {
        let outcome = outcome_of_error("too large".to_owned(), Some("use less".to_owned()));
        assert_eq!(outcome, Outcome::Failed { message: "too large; use less".to_owned() });
    }
}
