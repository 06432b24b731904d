//! The catalogue: one entry per possible finding, in one file or folder per area. An entry holds the
//! text that is the same on every host; checks add the values, names and commands of this host.
//! Text, JSON, `--explain` and the reference page are generated from it.

mod container;
mod disk;
mod entry;
mod gpu;
mod libraries;
mod memory;
mod network;
mod run;
mod shell;
mod system;
mod undetected;
mod windows;
mod wsl;

pub(crate) use system::CHECK_FAILED;

pub use entry::{Area, Entry, Fix, REFERENCE};
pub use undetected::{UNDETECTED, Undetected};

/// The entries of an area, in one or several tables.
fn rows(area: Area) -> &'static [&'static [Entry]] {
    match area {
        Area::System => &[system::ROWS],
        Area::Gpu => gpu::ROWS,
        Area::Libraries => &[libraries::ROWS],
        Area::Memory => &[memory::ROWS],
        Area::Disk => &[disk::ROWS],
        Area::Network => &[network::ROWS],
        Area::Wsl => wsl::ROWS,
        Area::Windows => &[windows::ROWS],
        Area::Container => &[container::ROWS],
        Area::Shell => &[shell::ROWS],
        Area::Run => &[run::ROWS],
    }
}

/// All entries, in the order of their areas.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    Area::ALL.into_iter().flat_map(|area| rows(area).iter().copied().flatten())
}

/// The entry with this id.
pub fn entry(id: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;

    #[test]
    fn ids_are_unique_and_named_by_their_area() {
        let all: Vec<&Entry> = entries().collect();
        for (index, entry) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.id != entry.id), "{} is listed twice", entry.id);
            let (area, words) = entry.id.split_once('.').unwrap();
            assert_eq!(area, entry.area.name(), "{}", entry.id);
            let is_word =
                |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            assert!(!words.is_empty() && words.chars().all(is_word), "{}", entry.id);
        }
    }

    #[test]
    fn problems_have_remedies_and_texts_have_no_period() {
        for entry in entries() {
            if entry.status >= Status::Warning {
                assert!(entry.remedy.is_some(), "{} has no remedy", entry.id);
            }
            for text in [Some(entry.cause), entry.remedy].into_iter().flatten() {
                assert!(!text.ends_with('.'), "{}: fragments have no full stop: {text}", entry.id);
            }
        }
    }
}
