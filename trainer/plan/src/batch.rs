//! The batch rule: `--batch` is the total over all ranks, and a multiple of their number.
