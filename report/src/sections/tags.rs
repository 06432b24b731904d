//! Where the numbers of boxes stand on a picture: at a corner or a side of their box, and never on each other. A number
//! that has no room is left out, rather than made unreadable; the list below the picture has all.

/// Left, top, right and bottom.
pub(crate) type Area = [f32; 4];

/// Width of a digit, relative to the size of the letters, and room to the left and right of a number.
const DIGIT: f32 = 0.62;
const SIDES: f32 = 0.3;
/// Places on each side of a box.
const STEPS: usize = 8;

/// The areas of the numbers from 1 on these boxes, in letters of this size. Numbers of the first boxes get their places first.
pub(crate) fn places(boxes: &[Area], [width, height]: [f32; 2], letters: f32) -> Vec<Option<Area>> {
    let mut taken: Vec<Area> = Vec::new();
    let mut place = |index: usize, of: &Area| {
        let digits = (index + 1).to_string().len() as f32;
        let size = [(digits * DIGIT + SIDES) * letters, letters];
        let inside = |[left, top, right, bottom]: &Area| {
            *left >= 0.0 && *top >= 0.0 && *right <= width && *bottom <= height
        };
        let found = candidates(of, size)
            .map(|[left, top]| [left, top, left + size[0], top + size[1]])
            .find(|area| inside(area) && !taken.iter().any(|other| overlap(area, other)));
        taken.extend(found);
        found
    };
    boxes.iter().enumerate().map(|(index, of)| place(index, of)).collect()
}

/// Upper left corners in order of preference: at the corners of the box, outside and inside, then along its sides.
fn candidates(
    &[left, top, right, bottom]: &Area,
    [width, height]: [f32; 2],
) -> impl Iterator<Item = [f32; 2]> {
    let corners = [
        [left, top - height],
        [left, top],
        [right - width, top - height],
        [right - width, top],
        [left, bottom - height],
        [left, bottom],
        [right - width, bottom - height],
        [right - width, bottom],
    ];
    let along = (1..STEPS).flat_map(move |step| {
        let share = step as f32 / STEPS as f32;
        let x = left + share * (right - width - left).max(0.0);
        let y = top + share * (bottom - height - top).max(0.0);
        [[x, top - height], [x, top], [left, y], [right - width, y], [x, bottom - height], [x, bottom]]
    });
    corners.into_iter().chain(along)
}

fn overlap(a: &Area, b: &Area) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_on_another_or_outside() {
        // Boxes that overlap, of which some begin at the edge, and more than have room.
        let boxes: Vec<Area> = (0..300)
            .map(|index| {
                let [x, y] = [(index * 37 % 90) as f32, (index * 53 % 70) as f32];
                [x, y, x + 10.0, y + 12.0]
            })
            .collect();
        let found = places(&boxes, [100.0, 80.0], 4.0);
        let shown: Vec<Area> = found.iter().copied().flatten().collect();
        assert!((50..300).contains(&shown.len()), "{} of 300", shown.len());
        for (index, one) in shown.iter().enumerate() {
            assert!(one[0] >= 0.0 && one[1] >= 0.0 && one[2] <= 100.0 && one[3] <= 80.0, "{one:?}");
            assert!(!shown[index + 1..].iter().any(|other| overlap(one, other)), "{one:?}");
        }
        assert!(found[0].is_some(), "the first boxes come first");
    }

    #[test]
    fn a_number_stands_above_its_box_where_there_is_room() {
        let place = |of: Area| places(&[of], [100.0, 100.0], 10.0)[0].unwrap();
        let above = place([20.0, 30.0, 60.0, 60.0]);
        assert_eq!([above[0], above[3]], [20.0, 30.0]);
        let at_the_edge = place([20.0, 0.0, 60.0, 60.0]);
        assert_eq!([at_the_edge[0], at_the_edge[1]], [20.0, 0.0]);
    }
}
