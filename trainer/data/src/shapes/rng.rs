//! SplitMix64 (Steele, Lea and Flood, 2014). The bytes of the data set depend on these numbers, so they must
//! not change with the version of a dependency.

/// A stream of random numbers.
pub(super) struct Rng(u64);

impl Rng {
    /// Stream `stream` of a seed.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = Self(seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03));
        // One step of mixing separates neighboring streams.
        Self(rng.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, inclusive.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = (high - low + 1) as u64;
        low + (((self.next() >> 32) * span) >> 32) as i64
    }

    /// True with probability 1/`n`.
    pub(super) fn one_in(&mut self, n: u32) -> bool {
        self.between(1, i64::from(n)) == 1
    }

    /// A color.
    pub(super) fn color(&mut self, low: i64, high: i64) -> [i64; 3] {
        [self.between(low, high), self.between(low, high), self.between(low, high)]
    }
}
