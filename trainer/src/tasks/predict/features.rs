//! `--visualize`: what each layer of the model makes of a picture. As in YOLOv5, each has a picture of its first 32
//! channels, and a NumPy file of all.

use std::path::Path;

use fs_err as fs;
use tch::{Device, Kind, Tensor, no_grad};
use yolo_data::image::Image;
use yolo_data::image::encode::by_extension;
use yolo_plan::model::ModelSpec;

use super::write::unwritable;
use crate::error::TrainError;
use crate::model::Model;
use crate::publish::publish;

/// Channels in a picture, and in a row of it.
const CHANNELS: (usize, usize) = (32, 8);
/// The longer side of a channel in pixels is at least this, so that the small maps of late layers can be seen.
const SIDE: usize = 128;
/// Five colors of matplotlib's viridis, from its beginning to its end.
const VIRIDIS: [[u8; 3]; 5] = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
/// Pixels between channels.
const GAP: usize = 4;

/// Writes the feature maps of the pictures in `input` to a folder for each in `folder`, with these names.
pub(super) fn write(
    model: &Model,
    input: &Tensor,
    folder: &Path,
    names: &[String],
) -> Result<(), TrainError> {
    let mut written = Ok(());
    let _ = no_grad(|| {
        model.forward_eval_with(input, &mut |layer, output| {
            if written.is_ok() {
                let stem = format!("stage{layer}_{}_features", module(model.spec(), layer));
                written = names.iter().zip(0..).try_for_each(|(name, index)| {
                    write_layer(&output.f_get(index)?, &folder.join(name), &stem)
                });
            }
        })
    })?;
    written
}

/// The maps of one layer for one picture: channels, height, width.
fn write_layer(maps: &Tensor, folder: &Path, stem: &str) -> Result<(), TrainError> {
    let maps = maps.f_to_kind(Kind::Float)?.f_to_device(Device::Cpu)?.f_contiguous()?;
    let shape: Vec<usize> = maps.size().iter().map(|&side| side as usize).collect();
    let [channels, height, width] = shape[..] else { return Ok(()) };
    if height < 2 || width < 2 {
        // Nothing can be seen of single numbers.
        return Ok(());
    }
    let mut values = vec![0.0_f32; channels * height * width];
    maps.f_copy_data(&mut values, channels * height * width)?;
    fs::create_dir_all(folder).map_err(unwritable)?;
    let path = folder.join(format!("{stem}.png"));
    publish(&path, &by_extension(&path, &sheet(&values, [height, width]))?).map_err(unwritable)?;
    publish(&folder.join(format!("{stem}.npy")), &npy(&values, [channels, height, width])).map_err(unwritable)
}

/// The first channels side by side, each from its smallest value (dark) to its largest (bright).
fn sheet(values: &[f32], [height, width]: [usize; 2]) -> Image {
    let maps: Vec<&[f32]> = values.chunks_exact(height * width).take(CHANNELS.0).collect();
    let times = SIDE.div_ceil(height.max(width));
    let (step_x, step_y) = (width * times + GAP, height * times + GAP);
    let columns = maps.len().min(CHANNELS.1);
    let rows = maps.len().div_ceil(CHANNELS.1);
    let palette: Vec<[u8; 3]> = (0..=255).map(color).collect();
    let mut sheet = Image::filled(columns * step_x + GAP, rows * step_y + GAP, [255; 3]);
    for (index, map) in maps.into_iter().enumerate() {
        let (low, high) = map.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
        let scale = if high > low { 255.0 / (high - low) } else { 0.0 };
        let (left, top) = (index % CHANNELS.1 * step_x + GAP, index / CHANNELS.1 * step_y + GAP);
        for (y, row) in map.chunks_exact(width).enumerate() {
            // What is not a number is dark, too.
            let colors = row.iter().map(|value| palette[usize::from(((value - low) * scale) as u8)]);
            let line: Vec<u8> = colors.flat_map(|color| color.repeat(times)).collect();
            for y in top + y * times..top + (y + 1) * times {
                let start = (y * sheet.width + left) * 3;
                sheet.data[start..start + line.len()].copy_from_slice(&line);
            }
        }
    }
    sheet
}

/// The color of a value from 0 to 255: on a line between colors of viridis, which gets brighter for people with any
/// color vision.
fn color(value: u32) -> [u8; 3] {
    let low = (value / 64).min(3) as usize;
    let share = value - 64 * low as u32;
    std::array::from_fn(|part| {
        let [below, above] = [VIRIDIS[low][part], VIRIDIS[low + 1][part]].map(u32::from);
        ((below * (64 - share) + above * share) / 64) as u8
    })
}

/// A NumPy file of this shape.
fn npy(values: &[f32], shape: [usize; 3]) -> Vec<u8> {
    let [channels, height, width] = shape;
    let mut header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({channels}, {height}, {width}), }}");
    // The values begin at a multiple of 64; before the header are 10 bytes, and after it a line feed.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 11;
    header = format!("{header:<padded$}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

/// What the description of the model calls a layer: `C3`, `Conv`.
fn module(spec: &ModelSpec, layer: usize) -> String {
    let rows = ["backbone", "head"].into_iter().filter_map(|part| spec.yaml.get(part)?.as_array()).flatten();
    let name = rows.into_iter().nth(layer).and_then(|row| row.get(2)?.as_str()).unwrap_or("layer");
    name.rsplit('.').next().unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numpy_file_has_a_header_of_64_bytes_and_the_values() {
        let file = npy(&[1.0, 2.0, 3.0, 4.0], [1, 2, 2]);
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!((10 + length) % 64, 0);
        let header = std::str::from_utf8(&file[10..10 + length]).unwrap();
        assert!(header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2), }"));
        assert!(header.ends_with('\n'));
        assert_eq!(file[10 + length..].len(), 16);
    }

    #[test]
    fn each_channel_goes_from_dark_to_bright() {
        let values: Vec<f32> =
            (0..3).flat_map(|channel| [0.0, 1.0, 2.0, 4.0].map(|value| value * channel as f32)).collect();
        let sheet = sheet(&values, [2, 2]);
        assert_eq!([sheet.width, sheet.height], [3 * (SIDE + GAP) + GAP, SIDE + 2 * GAP]);
        let light = |x: usize, y: usize| sheet.pixel(x, y).iter().map(|&part| u32::from(part)).sum::<u32>();
        let second = SIDE + 2 * GAP;
        assert!(light(second, GAP) < light(second + SIDE - 1, GAP));
        assert!(light(second + SIDE - 1, GAP) < light(second + SIDE - 1, GAP + SIDE - 1));
        assert_eq!(light(GAP, GAP), light(GAP + SIDE - 1, GAP + SIDE - 1), "all values are the same");
        assert_eq!(sheet.pixel(0, 0), [255; 3]);
    }
}
