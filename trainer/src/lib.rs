//! The library of the trainer.
