//! The power limit of a card that spares a weak supply or a hot case: it takes away a fifth of the power and little of
//! the speed. A lower one is reported as a cap.

/// The share of the usual limit.
pub const SPARING: f64 = 0.8;

/// The limit in watts, which is rounded up, so that it is never below that share.
pub fn sparing(usual_watts: f64) -> f64 {
    (usual_watts * SPARING / 10.0).ceil() * 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparing_limit_is_no_cap() {
        for usual in [70, 115, 165, 320, 350, 355, 450, 575, 700] {
            let usual = f64::from(usual);
            assert!(sparing(usual) >= usual * SPARING && sparing(usual) <= usual * 0.9 + 10.0, "{usual}");
        }
    }
}
