//! k-means over the sizes of boxes, which gives AutoAnchor its first guess (spec §7). Sides are
//! divided by their standard deviation, so that width and height count equally.

use yolo_data::random::Random;

use super::fit::Size;

/// Runs from different random boxes; the one with the smallest distance is taken (spec §7).
const RUNS: usize = 30;
/// A run has converged when the mean distance falls by no more than this, in standard deviations.
const CONVERGED: f64 = 1e-5;
/// Maximum steps of a run.
const MAX_STEPS: usize = 300;

/// The centers of `count` clusters of `boxes`; `None` if no run keeps that many, for example because
/// too few boxes differ.
pub(super) fn centers(boxes: &[Size], count: usize, random: &mut Random) -> Option<Vec<Size>> {
    if count == 0 || boxes.len() < count {
        return None;
    }
    let deviation = [deviation(boxes, 0), deviation(boxes, 1)];
    let scaled: Vec<Size> = boxes.iter().map(|[w, h]| [w / deviation[0], h / deviation[1]]).collect();
    let best = (0..RUNS)
        .filter_map(|_| converge(&scaled, start(&scaled, count, random)))
        .min_by(|a, b| a.distance.total_cmp(&b.distance))?;
    Some(best.centers.iter().map(|[w, h]| [w * deviation[0], h * deviation[1]]).collect())
}

struct Clustering {
    centers: Vec<Size>,
    /// Mean distance of a box from its center.
    distance: f64,
}

/// The standard deviation of the widths (`side` 0) or heights (1); 1 if they do not differ.
fn deviation(boxes: &[Size], side: usize) -> f32 {
    let count = boxes.len() as f64;
    let mean = boxes.iter().map(|size| f64::from(size[side])).sum::<f64>() / count;
    let variance = boxes.iter().map(|size| (f64::from(size[side]) - mean).powi(2)).sum::<f64>() / count;
    if variance > 0.0 { variance.sqrt() as f32 } else { 1.0 }
}

/// `count` random boxes at different positions of the list.
fn start(boxes: &[Size], count: usize, random: &mut Random) -> Vec<Size> {
    let mut chosen: Vec<usize> = Vec::with_capacity(count);
    while chosen.len() < count {
        let index = random.below(boxes.len());
        if !chosen.contains(&index) {
            chosen.push(index);
        }
    }
    chosen.into_iter().map(|index| boxes[index]).collect()
}

/// Moves the centers to the means of their boxes until they converge; `None` if a cluster becomes
/// empty.
fn converge(boxes: &[Size], mut centers: Vec<Size>) -> Option<Clustering> {
    let mut previous = f64::INFINITY;
    for _ in 0..MAX_STEPS {
        let mut sums = vec![(0.0_f64, 0.0_f64, 0_u64); centers.len()];
        let mut distance = 0.0;
        for &size in boxes {
            let (nearest, squared) = nearest(size, &centers);
            distance += f64::from(squared).sqrt();
            let (width, height, count) = &mut sums[nearest];
            *width += f64::from(size[0]);
            *height += f64::from(size[1]);
            *count += 1;
        }
        distance /= boxes.len() as f64;
        if sums.iter().any(|&(_, _, count)| count == 0) {
            return None;
        }
        if previous - distance <= CONVERGED {
            return Some(Clustering { centers, distance });
        }
        previous = distance;
        centers = sums
            .iter()
            .map(|&(width, height, count)| [(width / count as f64) as f32, (height / count as f64) as f32])
            .collect();
    }
    Some(Clustering { centers, distance: previous })
}

/// The index of the nearest center and the squared distance to it.
fn nearest(size: Size, centers: &[Size]) -> (usize, f32) {
    let mut best = (0, f32::INFINITY);
    for (index, center) in centers.iter().enumerate() {
        let (dw, dh) = (size[0] - center[0], size[1] - center[1]);
        let squared = dw * dw + dh * dh;
        if squared < best.1 {
            best = (index, squared);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use yolo_data::random::Purpose;

    use super::*;

    fn random() -> Random {
        Random::keyed(1, 0, Purpose::Anchors, 0)
    }

    #[test]
    fn separate_groups_are_found() {
        let groups = [[10.0, 10.0], [100.0, 20.0], [50.0, 300.0]];
        let boxes: Vec<Size> =
            groups.iter().flat_map(|[w, h]| [-1.0_f32, 0.0, 1.0].map(|d| [w + d, h - d])).collect();
        let mut found = centers(&boxes, 3, &mut random()).expect("three groups");
        found.sort_by(|a, b| a[1].total_cmp(&b[1]));
        for (found, group) in found.iter().zip(groups) {
            assert!((found[0] - group[0]).abs() < 1e-3 && (found[1] - group[1]).abs() < 1e-3, "{found:?}");
        }
    }

    #[test]
    fn too_few_different_boxes_have_no_clusters() {
        assert!(centers(&[[5.0, 5.0]; 20], 3, &mut random()).is_none());
        assert!(centers(&[[5.0, 5.0], [6.0, 7.0]], 3, &mut random()).is_none());
        assert!(centers(&[], 3, &mut random()).is_none());
    }

    #[test]
    fn as_many_boxes_as_clusters_are_their_own_centers() {
        let boxes = [[5.0, 50.0], [20.0, 7.0], [90.0, 80.0]];
        let mut found = centers(&boxes, 3, &mut random()).expect("three boxes");
        found.sort_by(|a, b| a[0].total_cmp(&b[0]));
        for (found, size) in found.iter().zip(boxes) {
            assert!((found[0] - size[0]).abs() < 1e-3 && (found[1] - size[1]).abs() < 1e-3, "{found:?}");
        }
    }
}
