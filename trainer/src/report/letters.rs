//! The letters of texts in images. Those of western European languages come with the program, so most images look the
//! same on every machine. Others are drawn with a font of this machine that has them, one after another from the left;
//! a letter that none has becomes a question mark.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

use ab_glyph::{Font as _, FontVec, PxScale, ScaleFont as _};
use fontdb::{Database, Source, Style, Weight};
use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster};

/// A letter as pixels, each the share that is covered, from 0 to 255.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) width: usize,
    pub(super) height: usize,
    pixels: Cow<'static, [u8]>,
}

impl Letter {
    /// The rows from the top.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.pixels.chunks_exact(self.width.max(1))
    }
}

/// The letters of a text.
pub(super) fn letters(text: &str, height: RasterHeight) -> Vec<Letter> {
    let letter = |letter| built_in(letter, height).or_else(|| of_machine(letter, height.val()));
    text.chars().filter_map(|one| letter(one).or_else(|| built_in('?', height))).collect()
}

/// What to tell the user about names that cannot be written in images; `None` if all can.
pub fn unwritable_letters<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let height = RasterHeight::Size16;
    let cannot = |one: &char| built_in(*one, height).is_none() && of_machine(*one, height.val()).is_none();
    let missing: BTreeSet<char> = names.into_iter().flat_map(str::chars).filter(cannot).collect();
    let shown: String = missing.iter().take(8).collect();
    let more = if missing.len() > 8 { " …" } else { "" };
    (!missing.is_empty()).then(|| {
        format!(
            "no font of this machine has the letters {shown}{more} of class names: in images they are question marks; \
             install a font, on Debian and Ubuntu: apt-get install fonts-noto-core fonts-noto-cjk"
        )
    })
}

fn built_in(letter: char, height: RasterHeight) -> Option<Letter> {
    let raster = get_raster(letter, FontWeight::Regular, height)?;
    Some(Letter { width: raster.width(), height: raster.height(), pixels: Cow::Borrowed(raster.pixels()) })
}

/// A letter in a font of this machine.
fn of_machine(letter: char, height: usize) -> Option<Letter> {
    static FONTS: LazyLock<Mutex<Fonts>> = LazyLock::new(|| Mutex::new(Fonts::of_machine()));
    FONTS.lock().unwrap_or_else(PoisonError::into_inner).letter(letter, height)
}

/// The fonts of this machine, and what was drawn with them.
struct Fonts {
    known: Database,
    opened: HashMap<fontdb::ID, FontVec>,
    drawn: HashMap<(char, usize), Option<Letter>>,
}

impl Fonts {
    fn of_machine() -> Self {
        let mut known = Database::new();
        known.load_system_fonts();
        Self { known, opened: HashMap::new(), drawn: HashMap::new() }
    }

    fn letter(&mut self, letter: char, height: usize) -> Option<Letter> {
        if let Some(drawn) = self.drawn.get(&(letter, height)) {
            return drawn.clone();
        }
        let drawn = self.draw(letter, height);
        self.drawn.insert((letter, height), drawn.clone());
        drawn
    }

    /// The letter in the first font that has it, upright and regular ones first.
    fn draw(&mut self, letter: char, height: usize) -> Option<Letter> {
        if letter.is_control() || letter.is_whitespace() {
            return None;
        }
        let mut faces: Vec<_> = self.known.faces().collect();
        faces.sort_by_key(|face| (face.style != Style::Normal, face.weight.0.abs_diff(Weight::NORMAL.0)));
        let ids: Vec<fontdb::ID> = faces.into_iter().map(|face| face.id).collect();
        ids.into_iter().find_map(|id| outlined(self.open(id)?, letter, height))
    }

    fn open(&mut self, id: fontdb::ID) -> Option<&FontVec> {
        if !self.opened.contains_key(&id) {
            let face = self.known.face(id)?;
            let bytes = match &face.source {
                Source::File(path) | Source::SharedFile(path, _) => fs_err::read(path).ok()?,
                Source::Binary(bytes) => bytes.as_ref().as_ref().to_vec(),
            };
            self.opened.insert(id, FontVec::try_from_vec_and_index(bytes, face.index).ok()?);
        }
        self.opened.get(&id)
    }
}

/// A letter whose font has an outline of it, on a line of this height.
fn outlined(font: &FontVec, letter: char, height: usize) -> Option<Letter> {
    let id = font.glyph_id(letter);
    if id.0 == 0 {
        return None;
    }
    // From the highest to the lowest part of its letters, a font is as high as the line.
    let scaled = font.as_scaled(PxScale::from(height as f32));
    let outline = font
        .outline_glyph(id.with_scale_and_position(scaled.scale(), ab_glyph::point(0.0, scaled.ascent())))?;
    let bounds = outline.px_bounds();
    let left = bounds.min.x.min(0.0);
    let width = scaled.h_advance(id).max(bounds.max.x - left).ceil().max(1.0) as usize;
    let mut pixels = vec![0; width * height];
    outline.draw(|x, y, share| {
        let x = x as i64 + (bounds.min.x - left) as i64;
        let y = i64::from(y) + bounds.min.y as i64;
        let inside = (0..width as i64).contains(&x) && (0..height as i64).contains(&y);
        if inside {
            pixels[y as usize * width + x as usize] = (share * 255.0).round().clamp(0.0, 255.0) as u8;
        }
    });
    Some(Letter { width, height, pixels: Cow::Owned(pixels) })
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "a test says what it skips")]
mod tests {
    use super::*;

    #[test]
    fn western_letters_need_no_font_and_unknown_ones_are_question_marks() {
        let height = RasterHeight::Size16;
        let western = letters("aé", height);
        assert_eq!(western, [built_in('a', height).unwrap(), built_in('é', height).unwrap()]);
        // This is a letter in no font.
        assert_eq!(letters("\u{10ffff}", height), letters("?", height));
        assert_eq!(unwritable_letters(["red cell", "Zürich"]), None);
        let said = unwritable_letters(["a\u{10ffff}"]).unwrap();
        assert!(
            said.starts_with("no font of this machine has the letters \u{10ffff} of class names"),
            "{said}"
        );
    }

    #[test]
    fn a_font_of_the_machine_is_asked_for_other_letters() {
        let mut fonts = Fonts::of_machine();
        let Some(letter) = fonts.letter('Ж', 24) else {
            println!("skipped: no font of this machine has Cyrillic letters");
            return;
        };
        assert_eq!((letter.height, letter.rows().count()), (24, 24));
        assert!(letter.pixels.iter().any(|&share| share > 200) && letter.pixels.contains(&0));
        assert_eq!(fonts.letter('Ж', 24), Some(letter));
    }
}
