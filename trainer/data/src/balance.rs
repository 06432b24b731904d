//! Gives the ranks of a step images of about the same total cost. Only the ranks change: each step has
//! the images that it would have without balance, and every rank as many as before.

use crate::sampler::Sampler;

/// The order of an epoch, `order`, with the images of each batch moved between the ranks so that the
/// ranks with the highest cost have less. `cost` is that of an image. Images that an epoch repeats are
/// at the end.
pub fn balanced(order: &[usize], sampler: &Sampler, cost: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut order: Vec<usize> = order.iter().copied().cycle().take(sampler.padded()).collect();
    for batch in 0..sampler.batches_per_epoch() {
        let window = sampler.global(batch);
        let sizes: Vec<usize> = (0..sampler.world()).map(|rank| sampler.of_rank(batch, rank).len()).collect();
        let images = &mut order[window];
        let costs: Vec<u64> = images.iter().map(|image| cost(*image)).collect();
        let parts = divided(&costs, &sizes);
        let moved: Vec<usize> = parts.into_iter().flatten().map(|place| images[place]).collect();
        images.copy_from_slice(&moved);
    }
    order
}

/// The places of the images of each rank, `sizes[r]` of them: the costliest first, each to the rank with
/// the least cost per image that has room. If the original parts are not worse, these.
fn divided(costs: &[u64], sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut places: Vec<usize> = (0..costs.len()).collect();
    let mut rest = places.as_slice();
    let mut original = Vec::with_capacity(sizes.len());
    for size in sizes {
        let (part, others) = rest.split_at(*size);
        original.push(part.to_vec());
        rest = others;
    }
    places.sort_by_key(|place| (std::cmp::Reverse(costs[*place]), *place));
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); sizes.len()];
    let mut loads = vec![0_u64; sizes.len()];
    for place in places {
        let open = (0..sizes.len()).filter(|&rank| parts[rank].len() < sizes[rank]);
        // The loads per image are compared as fractions.
        let least = open.min_by_key(|&rank| (per_image(loads[rank], sizes[rank]), rank));
        let Some(rank) = least else { break };
        parts[rank].push(place);
        loads[rank] += costs[place];
    }
    // Augmented batches are easier to compare if images keep their order.
    parts.iter_mut().for_each(|part| part.sort_unstable());
    if highest(costs, &parts) < highest(costs, &original) { parts } else { original }
}

/// The highest cost per image of a rank, in units that are comparable.
fn highest(costs: &[u64], parts: &[Vec<usize>]) -> u128 {
    let load = |part: &Vec<usize>| per_image(part.iter().map(|place| costs[*place]).sum(), part.len());
    parts.iter().map(load).max().unwrap_or(0)
}

fn per_image(load: u64, images: usize) -> u128 {
    (u128::from(load) << 32) / images.max(1) as u128
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The cost of each rank in each batch.
    fn loads(order: &[usize], shares: &[usize], costs: &[u64]) -> Vec<Vec<u64>> {
        let ranks: Vec<Sampler> =
            (0..shares.len()).map(|rank| Sampler::new(costs.len(), shares, rank, None)).collect();
        (0..ranks[0].batches_per_epoch())
            .map(|batch| {
                let load = |rank: &Sampler| rank.batch(order, batch).iter().map(|&image| costs[image]).sum();
                ranks.iter().map(load).collect()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn every_step_keeps_its_images_and_its_slowest_rank_is_never_slower(
            costs in prop::collection::vec(0_u64..1 << 40, 1..150),
            shares in prop::collection::vec(1_usize..12, 1..5), seed: u64, epoch in 0_u64..4,
        ) {
            let sampler = Sampler::new(costs.len(), &shares, 0, Some(seed));
            let plain = sampler.order(epoch);
            let order = balanced(&plain, &sampler, |image| costs[image]);
            prop_assert_eq!(&order, &balanced(&plain, &sampler, |image| costs[image]), "not deterministic");
            for batch in 0..sampler.batches_per_epoch() {
                let sorted = |order: &[usize]| {
                    let mut images: Vec<usize> =
                        sampler.global(batch).map(|place| order[place % order.len()]).collect();
                    images.sort_unstable();
                    images
                };
                prop_assert_eq!(sorted(&order), sorted(&plain), "batch {}", batch);
            }
            let of_slowest = |order: &[usize]| {
                let sizes = |batch| (0..shares.len()).map(move |rank| (batch, rank));
                let loads = loads(order, &shares, &costs);
                (0..loads.len())
                    .map(|batch| sizes(batch).map(|(batch, rank)| {
                        per_image(loads[batch][rank], sampler.of_rank(batch, rank).len())
                    }).max())
                    .collect::<Vec<_>>()
            };
            for (balanced, plain) in of_slowest(&order).into_iter().zip(of_slowest(&plain)) {
                prop_assert!(balanced <= plain);
            }
        }
    }

    #[test]
    fn one_costly_image_in_four_goes_to_each_rank_in_turn() {
        // The costly images are next to each other, as in a data set that is sorted by source.
        let costs: Vec<u64> = (0..64).map(|image| if image % 8 < 2 { 100 } else { 1 }).collect();
        let sampler = Sampler::new(64, &[4, 4], 0, None);
        let order = balanced(&sampler.order(0), &sampler, |image| costs[image]);
        assert!(loads(&sampler.order(0), &[4, 4], &costs).iter().all(|loads| *loads == [202, 4]));
        assert!(loads(&order, &[4, 4], &costs).iter().all(|loads| *loads == [103, 103]));
    }

    #[test]
    fn random_costs_are_within_a_few_percent() {
        let mut random = crate::random::Random::keyed(5, 0, crate::random::Purpose::Order, 0);
        let costs: Vec<u64> = (0..512).map(|_| (random.unit().powi(4) * 1e6) as u64).collect();
        let sampler = Sampler::new(512, &[16; 4], 0, Some(1));
        let spread = |order: &[usize]| -> f64 {
            let loads = loads(order, &[16; 4], &costs);
            let of_batch = |loads: &Vec<u64>| {
                let mean = loads.iter().sum::<u64>() as f64 / loads.len() as f64;
                loads.iter().copied().max().unwrap_or(0) as f64 / mean
            };
            loads.iter().map(of_batch).sum::<f64>() / loads.len() as f64
        };
        let plain = sampler.order(3);
        let (before, after) = (spread(&plain), spread(&balanced(&plain, &sampler, |image| costs[image])));
        assert!(
            before > 1.2 && after < 1.03,
            "the slowest rank has {before:.3}, balanced {after:.3} of the mean"
        );
    }
}
