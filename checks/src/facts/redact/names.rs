//! Names of users and machines. A name is replaced wherever it is a whole word. A name that is also
//! an ordinary word of recordings or of the system, such as `model` or `max`, is replaced only where
//! the context shows that it is a user or a machine.

use std::collections::BTreeSet;

use serde_json::Value;
use yolo_base::env::{USER, USERNAME};

use super::ordinary::{NOBODYS, is_ordinary};

/// Folders whose children are named after users.
const HOMES: [&str; 5] = ["/home/", "/Users/", "\\Users\\", "\\\\Users\\\\", "/var/home/"];
/// Folders of removable drives, with one child per user.
const DRIVES: [&str; 2] = ["/run/media/", "/media/"];

/// The names of one recording.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Replaced wherever they are whole words; longest first.
    words: Vec<(String, String)>,
    /// Replaced only where the context shows a user or a machine.
    bound: Vec<(String, String)>,
    /// The names that are the machine's.
    machines: BTreeSet<String>,
}

impl Names {
    /// Finds the names of users and of the machine.
    pub(super) fn of(recording: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let env = |name: &str| text(&recording["env"][name]);
        let machines: BTreeSet<String> =
            [text(&recording["hostname"]), env("WSL_HOST_NAME"), env("COMPUTERNAME")]
                .into_iter()
                .flatten()
                .collect();
        let mut names = machines.clone();
        names.extend([text(&recording["user"]["name"]), env(USER), env(USERNAME)].into_iter().flatten());
        // A home folder below another folder is a guess, so ordinary words are excluded there.
        let mut guessed = BTreeSet::new();
        super::visit(recording, &mut |text| {
            for (name, is_root) in users_of_paths(text) {
                if is_root {
                    names.insert(name)
                } else {
                    guessed.insert(name)
                };
            }
        });
        let own = super::ordinary::words_of(recording);
        let is_ordinary = |name: &str| is_ordinary(name) || own.contains(name);
        names.extend(guessed.into_iter().filter(|name| !is_ordinary(name)));
        names.retain(|name| name.chars().count() > 1 && !NOBODYS.contains(&name.as_str()));
        let masked = masks(names);
        let (bound, mut words): (Vec<_>, Vec<_>) =
            masked.into_iter().partition(|(name, _)| is_ordinary(name));
        words.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self { words, bound, machines }
    }

    /// The text with all names replaced.
    pub(super) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (word, stand_in) in &self.words {
            text = replace_words(&text, word, stand_in);
        }
        for (name, stand_in) in &self.bound {
            text = replace_homes(&text, name, stand_in);
        }
        text
    }

    /// The replacement of a text that is the name of a user or a machine, possibly with an address.
    pub(super) fn name(&self, text: &str) -> String {
        let all = self.words.iter().chain(&self.bound);
        let exact = all.into_iter().find(|(name, _)| name == text.trim());
        exact.map_or_else(|| self.text(text), |(name, stand_in)| text.replace(name.as_str(), stand_in))
    }

    /// Redacts /etc/hosts, in which a machine's name is always a name, even if it is an ordinary word.
    pub(super) fn hosts_file(&self, text: &str) -> String {
        let of_machine = self.bound.iter().filter(|(name, _)| self.machines.contains(name));
        of_machine.fold(self.text(text), |text, (name, stand_in)| replace_words(&text, name, stand_in))
    }
}

/// Whether the children of a folder are named after users.
pub(super) fn holds_homes(folder: &str) -> bool {
    let folder = folder.trim_end_matches(['/', '\\']);
    HOMES.iter().chain(&DRIVES).any(|home| {
        let home = home.trim_end_matches(['/', '\\']);
        folder.strip_suffix(home).is_some_and(|before| is_root(&format!("{before}{home}/"), before.len()))
    })
}

/// The names of users in paths, each with whether the path is certainly a home folder.
fn users_of_paths(text: &str) -> Vec<(String, bool)> {
    let mut users = Vec::new();
    for home in HOMES {
        for (at, _) in text.match_indices(home) {
            let rest = &text[at + home.len()..];
            let end = rest.find(['/', '\\', '\n', '\r', '"', ':', ';', '\'']).unwrap_or(rest.len());
            let name = rest[..end].trim();
            // A path in running text ends at a space; a user name has at most a few words.
            if !name.is_empty() && name.split(' ').count() <= 3 {
                users.push((name.to_owned(), is_root(text, at)));
            }
        }
    }
    users
}

/// Whether the parent of home folders at this position is the system's: at the start of a path, on a
/// Windows drive, or at one of the other places where Unix systems keep home folders.
fn is_root(text: &str, at: usize) -> bool {
    // Prefixes are short. The limit keeps the search linear in long texts.
    let from = (at.saturating_sub(64)..=at).find(|&place| text.is_char_boundary(place)).unwrap_or(at);
    let before = &text[from..at];
    let is_edge = |letter: char| letter.is_whitespace() || "\"'=,;:|(".contains(letter);
    let before = before.rsplit(is_edge).next().unwrap_or(before);
    let drive = before.strip_prefix("/mnt").unwrap_or(before).strip_prefix('/');
    before.is_empty()
        || drive.is_some_and(|drive| drive.len() == 1)
        || ["/var", "/export", "/usr", "/net", "/nfs"].contains(&before)
        || before.starts_with("\\\\") && before.matches('\\').count() <= 4
}

/// Each name with its own replacement, as far as letters suffice, so that two users stay two.
fn masks(names: BTreeSet<String>) -> Vec<(String, String)> {
    let mut masked: Vec<(String, String)> = Vec::new();
    for name in names {
        // In alphabetical order, so that redacting a recording again changes nothing.
        let is_free = |letter: &char| !masked.iter().any(|(_, taken)| *taken == mask_with(&name, *letter));
        let letter = ('x'..='z').find(is_free).unwrap_or('x');
        let stand_in = mask_with(&name, letter);
        masked.push((name, stand_in));
    }
    masked
}

/// Letters and digits of ASCII become `x`; all else stays.
pub(super) fn mask(name: &str) -> String {
    mask_with(name, 'x')
}

fn mask_with(name: &str, stand_in: char) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { stand_in } else { letter }).collect()
}

/// Replaces a word where it is a whole word, not part of a longer one.
fn replace_words(text: &str, word: &str, stand_in: &str) -> String {
    replace_where(text, word, stand_in, |_| true)
}

/// Replaces a name where it names a user's folder.
fn replace_homes(text: &str, name: &str, stand_in: &str) -> String {
    replace_where(text, name, stand_in, |before| {
        HOMES.iter().any(|home| before.ends_with(home) && is_root(before, before.len() - home.len()))
            || DRIVES.iter().any(|drive| before.ends_with(drive))
    })
}

fn replace_where(text: &str, word: &str, stand_in: &str, is_name: impl Fn(&str) -> bool) -> String {
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    for (at, _) in text.match_indices(word) {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let alone = !inside(before.chars().next_back()) && !inside(after.chars().next());
        result.push_str(&text[done..at]);
        result.push_str(if alone && is_name(before) { stand_in } else { word });
        done = at + word.len();
    }
    result.push_str(&text[done..]);
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_ordinary_word_is_a_name_only_where_a_user_is_expected() {
        let names = Names::of(&json!({ "user": { "name": "model" }, "env": { "HOME": "/home/model" } }));
        assert_eq!(names.text("/home/model/model.pt, model name"), "/home/xxxxx/model.pt, model name");
        assert_eq!(names.name("model"), "xxxxx");
        assert_eq!(
            names.text("C:\\Users\\model and /mnt/c/Users/model"),
            "C:\\Users\\xxxxx and /mnt/c/Users/xxxxx"
        );
    }

    #[test]
    fn folders_below_another_home_are_not_users() {
        let names = Names::of(&json!({ "env": { "YOLO_HOME": "/data/home/cache", "A": "/data/home/mara" } }));
        assert_eq!(names.text("/data/home/cache of /data/home/mara"), "/data/home/cache of /data/home/xxxx");
    }

    #[test]
    fn two_users_stay_two_and_their_stand_ins_stay_as_they_are() {
        let names = Names::of(&json!({ "files": { "/home/mara/a": "", "/home/anna/b": "" } }));
        assert_eq!(names.text("/home/mara, /home/anna"), "/home/yyyy, /home/xxxx");
        let again = Names::of(&json!({ "files": { "/home/yyyy/a": "", "/home/xxxx/b": "" } }));
        assert_eq!(again.text("/home/yyyy, /home/xxxx"), "/home/yyyy, /home/xxxx");
    }

    #[test]
    fn a_name_that_is_part_of_a_system_path_is_kept() {
        let recording = json!({
            "user": { "name": "uptime" },
            "files": { "/proc/uptime": "1 2", "/proc/self/limits": "Max files 7" },
        });
        assert_eq!(Names::of(&recording).text("/proc/uptime"), "/proc/uptime");
    }

    #[test]
    fn folders_of_homes_are_known() {
        for folder in ["/home", "/home/", "/mnt/c/Users", "C:\\Users", "/var/home", "/media"] {
            assert!(holds_homes(folder), "{folder}");
        }
        assert!(!holds_homes("/data/home") && !holds_homes("/home/mara"));
    }
}
