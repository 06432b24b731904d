//! Arithmetic on channels that both reading a model and counting its cost need.

/// The greatest common divisor. Both numbers are above 0.
pub fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The output channels of each kernel of a mixed convolution. With `equal_channels` the kernels get
/// equal numbers of channels, as far as possible; otherwise about equal numbers of weights.
pub fn mixed_shares(c2: usize, kernels: &[usize], equal_channels: bool) -> Vec<usize> {
    let n = kernels.len();
    if n == 0 {
        return Vec::new();
    }
    if equal_channels {
        // Channel i of c2 goes to kernel floor(i·n/c2), evenly spread.
        let mut shares = vec![0; n];
        let last = (c2.max(2) - 1) as f64;
        for channel in 0..c2 {
            let group = (channel as f64 * (n as f64 - 1e-6) / last).floor() as usize;
            shares[group.min(n - 1)] += 1;
        }
        return shares;
    }
    let weights: Vec<f64> = kernels.iter().map(|k| 1.0 / (k * k) as f64).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| (c2 as f64 * weight / total).round_ties_even() as usize).collect()
}
