//! Pictures as sixels, the protocol of terminals since the VT340: bands of six rows, one color after another. The
//! colors are a fixed palette; errors of a pixel are passed on to its neighbors (Floyd and Steinberg), which hides them.

use yolo_data::image::Image;

/// Steps of red, green and blue in the palette. The eye sees green best. Terminals have at least 256 colors.
const STEPS: [usize; 3] = [6, 8, 5];

/// The picture as sixels.
pub(super) fn encode(image: &Image) -> Vec<u8> {
    // `1` leaves pixels without a color as they are: there are none.
    let mut out = format!("\x1bP0;1q\"1;1;{};{}", image.width, image.height).into_bytes();
    for color in 0..STEPS.iter().product() {
        let [red, green, blue] = parts(color).map(|(index, steps)| index * 100 / (steps - 1));
        out.extend(format!("#{color};2;{red};{green};{blue}").into_bytes());
    }
    let colors = dithered(image);
    for band in colors.chunks(6 * image.width.max(1)) {
        write_band(band, image.width, &mut out);
        out.push(b'-');
    }
    out.extend(b"\x1b\\");
    out
}

/// The indices of a color's red, green and blue, with the number of steps.
fn parts(color: usize) -> [(usize, usize); 3] {
    let [red, green, blue] = STEPS;
    [(color / (green * blue), red), (color / blue % green, green), (color % blue, blue)]
}

/// The palette's color of each pixel.
fn dithered(image: &Image) -> Vec<u8> {
    let width = image.width;
    // The errors of this row and of the next one, with a pixel on each side.
    let mut errors = [vec![[0_i32; 3]; width + 2], vec![[0_i32; 3]; width + 2]];
    let mut colors = Vec::with_capacity(width * image.height);
    for row in image.data.chunks_exact(3 * width.max(1)) {
        for (x, pixel) in row.chunks_exact(3).enumerate() {
            let mut color = 0;
            for part in 0..3 {
                let last = STEPS[part] as i32 - 1;
                let wanted = i32::from(pixel[part]) + errors[0][x + 1][part] / 16;
                let index = ((wanted * last + 127) / 255).clamp(0, last);
                let error = (wanted - index * 255 / last).clamp(-128, 128);
                color = color * STEPS[part] + index as usize;
                errors[0][x + 2][part] += error * 7;
                errors[1][x][part] += error * 3;
                errors[1][x + 1][part] += error * 5;
                errors[1][x + 2][part] += error;
            }
            colors.push(color as u8);
        }
        errors.swap(0, 1);
        errors[1].fill([0; 3]);
    }
    colors
}

/// Writes up to six rows.
fn write_band(band: &[u8], width: usize, out: &mut Vec<u8>) {
    let mut present = [false; 256];
    band.iter().for_each(|color| present[usize::from(*color)] = true);
    for color in (0..=255_u8).filter(|color| present[usize::from(*color)]) {
        out.extend(format!("#{color}").into_bytes());
        let mut run = (0, 0_usize);
        for x in 0..width {
            let rows = band.chunks_exact(width).enumerate();
            let bits = rows.fold(0_u8, |bits, (y, row)| bits | u8::from(row[x] == color) << y);
            if bits != run.0 {
                write_run(run, out);
                run = (bits, 0);
            }
            run.1 += 1;
        }
        // What is not written at the end of a line has no pixels of this color.
        if run.0 != 0 {
            write_run(run, out);
        }
        out.push(b'$');
    }
}

fn write_run((bits, count): (u8, usize), out: &mut Vec<u8>) {
    let letter = b'?' + bits;
    match count {
        0..=3 => out.extend(std::iter::repeat_n(letter, count)),
        _ => {
            out.extend(format!("!{count}").into_bytes());
            out.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal makes of sixels: the colors in percent, row by row.
    fn decode(sixels: &[u8], width: usize, height: usize) -> Vec<[usize; 3]> {
        let text = std::str::from_utf8(sixels).unwrap();
        let text = text.strip_prefix("\x1bP0;1q").unwrap().strip_suffix("\x1b\\").unwrap();
        let mut palette = vec![[0; 3]; 256];
        let mut pixels = vec![[999; 3]; width * height.next_multiple_of(6)];
        let (mut x, mut band, mut color, mut times) = (0, 0, 0, 1);
        let mut rest = text;
        let number = |rest: &mut &str| {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            *rest = after;
            digits.parse::<usize>().unwrap()
        };
        while let Some(letter) = rest.chars().next() {
            rest = &rest[1..];
            match letter {
                '"' => {
                    let sides: Vec<usize> = (0..4)
                        .map(|_| {
                            let side = number(&mut rest);
                            rest = rest.strip_prefix(';').unwrap_or(rest);
                            side
                        })
                        .collect();
                    assert_eq!(sides, [1, 1, width, height]);
                }
                '#' => {
                    color = number(&mut rest);
                    if let Some(after) = rest.strip_prefix(";2;") {
                        rest = after;
                        for part in &mut palette[color] {
                            *part = number(&mut rest);
                            rest = rest.strip_prefix(';').unwrap_or(rest);
                        }
                    }
                }
                '!' => times = number(&mut rest),
                '$' => x = 0,
                '-' => (x, band) = (0, band + 1),
                letter => {
                    let bits = letter as u8 - b'?';
                    for _ in 0..std::mem::replace(&mut times, 1) {
                        for y in (0..6).filter(|y| bits >> y & 1 == 1) {
                            pixels[(band * 6 + y) * width + x] = palette[color];
                        }
                        x += 1;
                    }
                }
            }
        }
        pixels.truncate(width * height);
        pixels
    }

    #[test]
    fn every_pixel_has_about_its_color() {
        let (width, height) = (40, 20);
        let mut image = Image::filled(width, height, [0; 3]);
        for (index, pixel) in image.data.chunks_exact_mut(3).enumerate() {
            let (x, y) = (index % width, index / width);
            pixel.copy_from_slice(&[(x * 6) as u8, (y * 12) as u8, if x < 20 { 255 } else { 30 }]);
        }
        let pixels = decode(&encode(&image), width, height);
        // Dithering keeps the mean of neighbors.
        for (left, top) in [(0, 0), (10, 5), (32, 12)] {
            for part in 0..3 {
                let mean = |value: &dyn Fn(usize) -> f64| {
                    let cells = (0..64).map(|cell| (top + cell / 8) * width + left + cell % 8);
                    cells.map(value).sum::<f64>() / 64.0
                };
                let want = mean(&|index| f64::from(image.data[index * 3 + part]) / 2.55);
                let got = mean(&|index| pixels[index].get(part).copied().unwrap_or_default() as f64);
                assert!((want - got).abs() < 6.0, "{left} {top} {part}: {want} {got}");
            }
        }
    }
}
