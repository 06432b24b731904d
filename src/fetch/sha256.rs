//! Incremental SHA-256. This is the implementation of ring, which TLS needs anyway: on CPUs without SHA
//! instructions it takes half the time of portable Rust, and hashing limits fast downloads. The tests
//! compare it with another implementation.

use ring::digest::{Context, SHA256};

/// The SHA-256 of the bytes so far.
pub(crate) struct Sha256(Context);

impl Sha256 {
    pub(crate) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        let mut sum = [0; 32];
        sum.copy_from_slice(self.0.finish().as_ref());
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sha2::Digest as _;

    proptest! {
        #[test]
        fn pieces_have_the_sum_of_the_whole(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8)) {
            let mut ours = Sha256::new();
            pieces.iter().for_each(|piece| ours.update(piece));
            let theirs: [u8; 32] = sha2::Sha256::digest(pieces.concat()).into();
            prop_assert_eq!(ours.finish(), theirs);
        }
    }
}
