//! Pictures in the protocols of [kitty](https://sw.kovidgoyal.net/kitty/graphics-protocol/) and
//! [iTerm2](https://iterm2.com/documentation-images.html), which other terminals know, too.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use yolo_data::image::Image;

/// The most characters in one command of kitty.
const CHUNK: usize = 4096;

/// A picture for kitty, which does not move the cursor. With `replaces`, it takes the place of the one before it.
pub(super) fn kitty(image: &Image, replaces: bool) -> Option<Vec<u8>> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&image.data).ok()?;
    let text = STANDARD.encode(packed.finish().ok()?);
    // Pictures with a number are kept once: a video would fill the memory of the terminal. `q=2` asks for no answer.
    let number = if replaces { ",i=5,p=1" } else { "" };
    let head = format!("a=T,f=24,o=z,C=1,q=2,s={},v={}{number},", image.width, image.height);
    let count = text.len().div_ceil(CHUNK);
    let mut out = Vec::with_capacity(text.len() + 32 * count);
    for (index, chunk) in text.as_bytes().chunks(CHUNK).enumerate() {
        let (head, more) = (if index == 0 { head.as_str() } else { "" }, u8::from(index + 1 < count));
        out.extend(format!("\x1b_G{head}m={more};").into_bytes());
        out.extend(chunk);
        out.extend(b"\x1b\\");
    }
    Some(out)
}

/// A file for iTerm2, in base64, in so many columns and lines.
pub(super) fn iterm2(file: &str, bytes: usize, [columns, lines]: [usize; 2]) -> Vec<u8> {
    format!(
        "\x1b]1337;File=inline=1;size={bytes};width={columns};height={lines};preserveAspectRatio=1:{file}\x07"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn kitty_gets_all_pixels_in_chunks() {
        // Noise cannot be packed, so there are several chunks.
        let mut image = Image::filled(64, 64, [0; 3]);
        let mut state = 1_u32;
        for part in &mut image.data {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *part = (state >> 24) as u8;
        }
        let text = String::from_utf8(kitty(&image, false).unwrap()).unwrap();
        let commands: Vec<(&str, &str)> = text
            .split("\x1b\\")
            .filter_map(|command| command.strip_prefix("\x1b_G")?.split_once(';'))
            .collect();
        assert!(commands.len() > 2 && commands.iter().all(|(_, data)| data.len() <= CHUNK));
        assert_eq!(commands[0].0, "a=T,f=24,o=z,C=1,q=2,s=64,v=64,m=1");
        assert_eq!((commands[1].0, commands[commands.len() - 1].0), ("m=1", "m=0"));
        let packed: String = commands.iter().map(|(_, data)| *data).collect();
        let mut pixels = Vec::new();
        ZlibDecoder::new(&STANDARD.decode(packed).unwrap()[..]).read_to_end(&mut pixels).unwrap();
        assert_eq!(pixels, image.data);
        assert!(String::from_utf8(kitty(&image, true).unwrap()).unwrap().contains(",i=5,p=1,"));
    }
}
