//! Words that the redaction keeps, even if a user or a machine has such a name: keywords of the
//! recording format, and words from the system's own paths and files. A recording in which they were
//! masked could not be replayed.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::facts::question::Section;

/// Common names that identify nobody.
pub(super) const NOBODYS: [&str; 22] = [
    "root",
    "user",
    "users",
    "admin",
    "Public",
    "Default",
    "default",
    "runner",
    "ubuntu",
    "debian",
    "fedora",
    "arch",
    "linux",
    "windows",
    "microsoft",
    "docker",
    "localhost",
    "nobody",
    "yolo",
    "nvidia",
    "data",
    "home",
];

/// Keywords of the recording format, and words that the checks search for.
const WORDS: &str = "
    address addresses amp available backend base64 batch binds block cache capability char cluster
    code comment commands compute config container cores cpu cuda device devices disk display down
    driver drivers drvfs eight entry enabled env error eth exit ext4 fifo file files filesystems
    folder folders free full gid gloo go gpu gpus graphics groups heads host hostname id image
    images inodes intent interface interfaces internal kernel kind labels lib lib64 libraries
    library libtorch links links listening local lo low master max mem memory min mirrored mnt mode
    model modified module mount name names nat nccl network networking no none nobody numa nvml off
    ok on options out parent path persistence pid places port process processes processor profile
    program project protected python python3 ram rank ranks read readable real registry resume ro
    run running runs rw server set share shared shapes shm size sm socket speed start state stats
    status stderr stdout stopped stuck sys system systemd tails task temp temperature text the time
    tmp tmpfs topology torch total train trainer true false type ubuntu uid up used utf8 uuid val
    val2017 venv version via video voc weights wheel work worker workers working workspace writable
    wsl wsl2 xid yes";

/// Whether a name is also a keyword of the format or a word of the system.
pub(super) fn is_ordinary(name: &str) -> bool {
    let lower = name.to_lowercase();
    Section::ALL.iter().any(|section| section.name() == lower)
        || WORDS.split_whitespace().any(|word| word == lower)
}

/// The words in this recording's questions and kernel files, except those from users' paths, which
/// contain the user's name.
pub(super) fn words_of(recording: &Value) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut take = |text: &str| {
        let parts = text.split(|letter: char| !letter.is_alphanumeric());
        words.extend(parts.filter(|word| !word.is_empty()).map(ToOwned::to_owned));
    };
    for (section, content) in recording.as_object().into_iter().flatten() {
        let Some(rows) = content.as_object() else { continue };
        for (name, answer) in rows {
            match section.as_str() {
                "env" | "libraries" | "registry" => take(name),
                "commands" => plain_words(name).for_each(&mut take),
                // Only system paths count: users and Windows choose the names of the others.
                "files" | "heads" | "tails" | "links" | "folders" | "stats" if is_of_system(name) => {
                    take(name);
                    if is_of_kernel(name) && !name.ends_with("hostname") {
                        super::visit(answer, &mut |text| plain_words(text).for_each(&mut take));
                    }
                }
                // The fields of an answer that is one object, not a table.
                "nvml" | "system" | "places" | "user" | "intent" => take(name),
                _ => {}
            }
        }
    }
    words
}

/// Splits a text into words. Skips paths, addresses and settings, which may contain a user name.
fn plain_words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter(|word| !word.contains(['/', '\\', '@', '=']))
}

fn is_of_system(path: &str) -> bool {
    const ROOTS: [&str; 9] =
        ["/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib/", "/bin/", "/sbin/", "/boot/"];
    ROOTS.iter().any(|root| path.starts_with(root)) && !path.starts_with("/usr/home/")
}

fn is_of_kernel(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/sys/")
}
