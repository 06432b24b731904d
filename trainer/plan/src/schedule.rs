//! Learning rate, momentum and accumulation over a run, as pure functions of the step (spec §6).
