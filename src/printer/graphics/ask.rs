//! Asks the terminal what it can show. All terminals answer the last question, so nothing is waited for in vain; what
//! was not answered before it is not known. Only `answers` is about the terminal itself.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::time::{Duration, Instant};

use rustix::termios::{
    OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use yolo_base::env::{LC_TERMINAL, TERM_PROGRAM};

use super::terminal::{Graphics, Protocol};

/// Whether it knows kitty's protocol, the size of a character in pixels, its name, and what it is (DA1).
const QUESTIONS: &[u8] = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[16t\x1b[>q\x1b[c";
/// How long an answer may take, over a network.
const PATIENCE: Duration = Duration::from_secs(2);
/// The size of a character, if the terminal does not say it.
const CELL: [usize; 2] = [10, 20];
/// Terminals that know iTerm2's protocol, in their answers or in variables.
const LIKE_ITERM2: [&str; 3] = ["iterm", "wezterm", "mintty"];

/// The terminal on stderr.
///
/// # Errors
/// Why no picture can be shown.
pub(super) fn terminal() -> Result<Graphics, &'static str> {
    if !std::io::stderr().is_terminal() {
        return Err("stderr is not a terminal");
    }
    let none = "this terminal does not answer";
    let mut tty = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(|_| none)?;
    // A process in the background would be stopped by its question.
    if tcgetpgrp(&tty).ok() != Some(rustix::process::getpgrp()) {
        return Err("yolo runs in the background");
    }
    let size = tcgetwinsize(&tty).map_err(|_| none)?;
    let said = answers(&mut tty).ok_or(none)?;
    let variables = [TERM_PROGRAM, LC_TERMINAL].map(|name| std::env::var(name).unwrap_or_default());
    let protocol = protocol(&said, &variables)
        .ok_or("this terminal knows none of the protocols of kitty, iTerm2 and sixel")?;
    let number = |value: u16| usize::from(value);
    let [columns, lines] = [number(size.ws_col).max(1), number(size.ws_row).max(1)];
    let of_window = [number(size.ws_xpixel) / columns, number(size.ws_ypixel) / lines];
    let cell = cell(&said).or(Some(of_window).filter(|sides| sides.iter().all(|&side| side > 0)));
    Ok(Graphics { protocol, cell: cell.unwrap_or(CELL), size: [columns, lines] })
}

/// What the terminal answers; `None` if it does not.
fn answers(tty: &mut File) -> Option<String> {
    let before = tcgetattr(&*tty).ok()?;
    let raw = Raw::enter(tty.try_clone().ok()?, before)?;
    tty.write_all(QUESTIONS).ok()?;
    let (began, mut said) = (Instant::now(), Vec::new());
    let mut part = [0; 256];
    while began.elapsed() < PATIENCE {
        let count = tty.read(&mut part).ok()?;
        said.extend(&part[..count]);
        // Ctrl-C is a letter here.
        if part[..count].contains(&3) {
            return None;
        }
        if is_complete(&said) {
            break;
        }
    }
    // A terminal that does not understand a question may have written it.
    let _ = tty.write_all(b"\r\x1b[K");
    drop(raw);
    is_complete(&said).then(|| String::from_utf8_lossy(&said).into_owned())
}

/// A terminal that passes on each letter, and shows none, as long as this exists.
struct Raw {
    tty: File,
    before: Termios,
}

impl Raw {
    fn enter(tty: File, before: Termios) -> Option<Self> {
        let mut raw = before.clone();
        raw.make_raw();
        // A read returns after a tenth of a second, with or without letters.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(&tty, OptionalActions::Flush, &raw).ok()?;
        Some(Self { tty, before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.tty, OptionalActions::Now, &self.before);
    }
}

/// Whether the answer to the last question is there: `ESC [ ? numbers c`.
fn is_complete(said: &[u8]) -> bool {
    attributes(&String::from_utf8_lossy(said)).is_some()
}

/// The numbers of the last answer.
fn attributes(said: &str) -> Option<Vec<&str>> {
    said.split("\x1b[?").skip(1).find_map(|answer| {
        let (numbers, _) = answer.split_once('c')?;
        let is_list = numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
        is_list.then(|| numbers.split(';').collect())
    })
}

/// The best protocol that the terminal knows.
fn protocol(said: &str, variables: &[String]) -> Option<Protocol> {
    if said.contains("\x1b_Gi=31;OK") {
        return Some(Protocol::Kitty);
    }
    let name = said.split("\x1bP>|").nth(1).and_then(|rest| rest.split('\x1b').next()).unwrap_or_default();
    let names = variables.iter().map(String::as_str).chain([name]).map(str::to_ascii_lowercase);
    // tmux passes variables on, but not the pictures.
    let is_tmux = name.starts_with("tmux");
    if !is_tmux && names.into_iter().any(|name| LIKE_ITERM2.iter().any(|known| name.starts_with(known))) {
        return Some(Protocol::Iterm2);
    }
    attributes(said)?.contains(&"4").then_some(Protocol::Sixel)
}

/// Width and height of a character in pixels: `ESC [ 6 ; height ; width t`.
fn cell(said: &str) -> Option<[usize; 2]> {
    let (sides, _) = said.split("\x1b[6;").nth(1)?.split_once('t')?;
    let (height, width) = sides.split_once(';')?;
    let (height, width) = (height.parse().ok()?, width.parse().ok()?);
    (height > 0 && width > 0).then_some([width, height])
}

#[cfg(test)]
mod tests {
    use super::*;

    const KITTY: &str = "\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t\x1bP>|kitty(0.35.2)\x1b\\\x1b[?62;c";
    const ITERM2: &str = "\x1bP>|iTerm2 3.5.4\x1b\\\x1b[?64;1;2;4;6;17;18;21;22c";
    const FOOT: &str = "\x1b[6;18;9t\x1bP>|foot(1.16.2)\x1b\\\x1b[?62;4;22c";
    const TMUX: &str = "\x1bP>|tmux 3.4\x1b\\\x1b[?1;2;4c";
    const XTERM: &str = "\x1bP>|XTerm(379)\x1b\\\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c";

    #[test]
    fn the_answers_of_terminals_tell_their_protocol() {
        let of = |said: &str, variable: &str| protocol(said, &[variable.to_owned()]);
        assert_eq!(of(KITTY, ""), Some(Protocol::Kitty));
        assert_eq!(of(ITERM2, ""), Some(Protocol::Iterm2));
        assert_eq!(of(FOOT, ""), Some(Protocol::Sixel));
        assert_eq!(of(TMUX, "iTerm.app"), Some(Protocol::Sixel));
        assert_eq!(of(XTERM, ""), None);
        assert_eq!(of("\x1b[?1;2c", "WezTerm"), Some(Protocol::Iterm2));
        assert_eq!((cell(KITTY), cell(FOOT), cell(ITERM2)), (Some([10, 20]), Some([9, 18]), None));
    }

    #[test]
    fn the_last_answer_ends_the_wait() {
        for whole in [KITTY, ITERM2, FOOT, TMUX, XTERM] {
            assert!(is_complete(whole.as_bytes()));
            assert!(!is_complete(&whole.as_bytes()[..whole.len() - 1]));
        }
        assert!(!is_complete(b"") && !is_complete(b"abc") && !is_complete(b"\x1b[?1;2$y"));
    }
}
