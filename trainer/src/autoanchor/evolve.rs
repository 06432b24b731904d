//! Evolution of anchors (spec §7): each generation mutates the best anchors so far, and is kept if
//! it fits the boxes better.

use yolo_data::random::Random;

use super::fit::{Size, fitness};

/// Generations (spec §7).
const GENERATIONS: usize = 1000;
/// The probability that a side changes (spec §7).
const MUTATION: f64 = 0.9;
/// Standard deviation of the factor of a changed side, around 1 (spec §7).
const SIGMA: f64 = 0.1;
/// The smallest and the largest factor of a side per generation (spec §7).
const FACTOR: (f64, f64) = (0.3, 3.0);
/// No side falls below this, in pixels (spec §7).
const MIN_SIDE: f32 = 2.0;

/// Evolves `anchors` for `boxes`; the result fits them at least as well.
pub(super) fn evolve(anchors: Vec<Size>, boxes: &[Size], anchor_t: f32, random: &mut Random) -> Vec<Size> {
    let mut best_fitness = fitness(&anchors, boxes, anchor_t);
    let mut best = anchors;
    for _ in 0..GENERATIONS {
        let child: Vec<Size> = best.iter().map(|&size| mutate(size, random)).collect();
        let child_fitness = fitness(&child, boxes, anchor_t);
        if child_fitness > best_fitness {
            (best, best_fitness) = (child, child_fitness);
        }
    }
    best
}

fn mutate(size: Size, random: &mut Random) -> Size {
    size.map(|side| {
        if random.chance(MUTATION) {
            let factor = (1.0 + SIGMA * random.normal()).clamp(FACTOR.0, FACTOR.1);
            (side * factor as f32).max(MIN_SIDE)
        } else {
            side.max(MIN_SIDE)
        }
    })
}

#[cfg(test)]
mod tests {
    use yolo_data::random::Purpose;

    use super::*;

    #[test]
    fn evolution_raises_the_fitness_and_keeps_the_least_side() {
        let mut random = Random::keyed(5, 0, Purpose::Anchors, 0);
        let boxes: Vec<Size> = (1..60).map(|i| [i as f32, 3.0 + 0.5 * i as f32]).collect();
        let start = vec![[1.0, 1.0], [8.0, 40.0], [50.0, 20.0]];
        let before = fitness(&start, &boxes, 4.0);
        let evolved = evolve(start, &boxes, 4.0, &mut random);
        let after = fitness(&evolved, &boxes, 4.0);
        assert!(after > before + 0.1, "{before} to {after}");
        assert!(evolved.iter().flatten().all(|&side| side >= MIN_SIDE), "{evolved:?}");
    }
}
