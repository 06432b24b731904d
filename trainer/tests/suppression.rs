//! What holds for suppression of any outputs: the invariants of its result, and that neither kept buffers nor a
//! filter on the device change it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use tch::{Kind, Tensor};
use yolo_trainer::detection::{Detection, NmsSettings, Rows, Suppressor, suppress};

const CLASSES: usize = 3;

/// Boxes of a small area, so that many overlap, with confidences that often are equal.
fn rows() -> impl Strategy<Value = Vec<f32>> {
    let part = |steps: u8| (0..=steps).prop_map(move |step| f32::from(step) / f32::from(steps));
    let row = (0_u8..60, 0_u8..60, 1_u8..40, 1_u8..40, part(8), [part(4), part(4), part(4)]);
    let row = row.prop_map(|(x, y, w, h, objectness, classes)| {
        let [x, y, w, h] = [x, y, w, h].map(f32::from);
        [vec![x, y, w, h, objectness], classes.to_vec()].concat()
    });
    prop::collection::vec(row, 0..80).prop_map(|rows| rows.concat())
}

fn settings() -> impl Strategy<Value = NmsSettings> {
    let thresholds = (0_u8..10, 0_u8..10);
    (thresholds, any::<bool>(), any::<bool>(), 1_usize..40).prop_map(
        |((conf, iou), multi_label, agnostic, max_det)| NmsSettings {
            conf_thres: f32::from(conf) / 10.0,
            iou_thres: f64::from(iou) / 10.0,
            multi_label,
            agnostic,
            classes: None,
            max_det,
        },
    )
}

/// The overlap of two boxes far from the limits of precision.
fn overlap(a: &Detection, b: &Detection) -> f64 {
    let [a, b] = [a.corners, b.corners].map(|corners| corners.map(f64::from));
    let width = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let height = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let area = |side: [f64; 4]| (side[2] - side[0]) * (side[3] - side[1]);
    width * height / (area(a) + area(b) - width * height)
}

proptest! {
    #[test]
    fn kept_boxes_are_confident_sorted_few_and_apart(rows in rows(), settings in settings()) {
        let found = suppress(&rows, CLASSES, &[], &settings);
        prop_assert!(found.len() <= settings.max_det);
        prop_assert!(found.iter().all(|one| one.confidence > settings.conf_thres && one.class < CLASSES));
        prop_assert!(found.windows(2).all(|pair| pair[0].confidence >= pair[1].confidence));
        for (index, one) in found.iter().enumerate() {
            for other in &found[..index] {
                let compared = settings.agnostic || one.class == other.class;
                prop_assert!(!compared || overlap(one, other) <= settings.iou_thres + 1e-6);
            }
        }
    }

    #[test]
    fn a_dropped_box_overlaps_a_kept_one_that_is_as_confident(rows in rows(), settings in settings()) {
        let settings = NmsSettings { max_det: 1000, ..settings };
        let found = suppress(&rows, CLASSES, &[], &settings);
        // At an IoU of 1 nothing is above the threshold, so these are all candidates.
        let all = suppress(&rows, CLASSES, &[], &NmsSettings { iou_thres: 1.0, ..settings.clone() });
        for one in &all {
            let reason = |kept: &Detection| {
                kept == one
                    || kept.confidence >= one.confidence
                        && (settings.agnostic || kept.class == one.class)
                        && overlap(kept, one) > settings.iou_thres - 1e-6
            };
            prop_assert!(found.iter().any(reason), "{:?}", one);
        }
    }

    #[test]
    fn the_buffers_of_other_images_change_nothing(
        first in rows(),
        second in rows(),
        settings in settings(),
    ) {
        let mut kept = Suppressor::default();
        kept.suppress(&first, CLASSES, &[], &settings);
        let again = kept.suppress(&second, CLASSES, &[], &settings);
        prop_assert_eq!(again, suppress(&second, CLASSES, &[], &settings));
    }

    #[test]
    fn the_rows_that_a_device_leaves_out_change_nothing(rows in rows(), settings in settings()) {
        let numbers = 5 + CLASSES;
        let count = (rows.len() / numbers) as i64;
        // The second image has the rows of the first in the opposite order.
        let one = Tensor::from_slice(&rows).view([count, numbers as i64]);
        let decoded = Tensor::stack(&[one.shallow_clone(), one.flip([0])], 0);
        let (all, above) = (Rows::all(&decoded).unwrap(), Rows::above(&decoded, settings.conf_thres).unwrap());
        prop_assert_eq!((all.len(), above.len()), (2, 2));
        for (all, above) in all.images().zip(above.images()) {
            prop_assert!(above.len() <= all.len());
            let found = suppress(above, CLASSES, &[], &settings);
            prop_assert_eq!(found, suppress(all, CLASSES, &[], &settings));
        }
    }
}

#[test]
fn of_too_many_candidates_the_most_confident_enter() {
    // Two boxes for each of 50,000 places, so far apart that none overlaps another; the later, the surer.
    let rows: Vec<f32> = (0..100_000_u32)
        .flat_map(|index| {
            let (x, y) = ((index % 300) as f32 * 10.0, (index / 300) as f32 * 10.0);
            [x, y, 4.0, 4.0, 1.0, 0.001 + index as f32 * 1e-6]
        })
        .collect();
    let settings = NmsSettings {
        conf_thres: 0.0005,
        iou_thres: 0.5,
        multi_label: true,
        agnostic: false,
        classes: None,
        max_det: usize::MAX,
    };
    let found = suppress(&rows, 1, &[], &settings);
    assert_eq!(found.len(), 30_000);
    assert_eq!(
        found[0].corners[..2],
        [(99_999 % 300) as f32 * 10.0 - 2.0, (99_999 / 300) as f32 * 10.0 - 2.0]
    );
    let last = 70_000;
    assert_eq!(
        found[29_999].corners[..2],
        [(last % 300) as f32 * 10.0 - 2.0, (last / 300) as f32 * 10.0 - 2.0]
    );
}

#[test]
fn rows_in_half_precision_are_read_in_single() {
    let decoded =
        Tensor::from_slice(&[8.0_f32, 8.0, 4.0, 4.0, 0.5, 0.25]).view([1, 1, 6]).to_kind(Kind::Half);
    for rows in [Rows::all(&decoded).unwrap(), Rows::above(&decoded, 0.1).unwrap()] {
        assert_eq!(rows.of_image(0), [8.0, 8.0, 4.0, 4.0, 0.5, 0.25]);
    }
    assert!(Rows::above(&decoded, 0.125).unwrap().of_image(0).is_empty(), "0.125 is not above 0.125");
}
