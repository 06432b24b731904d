//! What a program or library needs from the system that loads it: the versions of symbols, and whether the
//! stack must be executable. A recording written by hand may hold what readelf or objdump print instead.

use super::version::Version;
use crate::facts::answer::{Binary, Fact};
use crate::facts::host::Host;

impl Binary {
    /// The version of glibc that it needs.
    pub fn glibc(&self) -> Option<Version> {
        self.needs("GLIBC")
    }

    /// The newest version of a kind of symbols that it needs.
    pub fn needs(&self, kind: &str) -> Option<Version> {
        Version::find(self.versions.get(kind)?)
    }

    /// The newest version of a kind of symbols that it has.
    pub fn has(&self, kind: &str) -> Option<Version> {
        Version::find(self.defines.get(kind)?)
    }
}

impl Host {
    /// The program or library at this path; `None` if there is none.
    pub fn binary(&self, path: &str) -> Fact<Option<Binary>> {
        self.binary_answer(path).or_else(|why| self.binary_of_tools(path).map(Some).ok_or(why))
    }

    fn binary_of_tools(&self, path: &str) -> Option<Binary> {
        let outputs = ["readelf", "objdump"].into_iter().flat_map(|tool| self.recorded_outputs(tool));
        let of_file = outputs.filter(|(line, _)| line.split_whitespace().any(|word| word == path));
        let texts: Vec<String> = of_file.map(|(_, output)| output.text()).collect();
        (!texts.is_empty()).then(|| of_texts(&texts.join("\n")))
    }
}

/// `GNU_STACK 0x000000 … RWE 0x10` of readelf, two lines with `STACK` and `flags rwx` of objdump, and the
/// names of versions.
fn of_texts(text: &str) -> Binary {
    let mut binary = Binary::default();
    let mut is_stack = false;
    let mut newest: Option<Version> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first() {
            Some(&"GNU_STACK") => {
                let flags = words.iter().find(|word| word.starts_with('R') && word.len() <= 3);
                binary.executable_stack = flags.map(|flags| flags.contains('E'));
            }
            Some(&"STACK") => is_stack = true,
            Some(&"NEEDED") => binary.needed.extend(words.get(1).map(|&name| name.to_owned())),
            _ if line.contains("(NEEDED)") => {
                let name = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                binary.needed.extend(name.map(|(name, _)| name.to_owned()));
            }
            _ if is_stack && line.contains("flags ") => {
                binary.executable_stack = Some(line.contains("rwx"));
                is_stack = false;
            }
            _ => {}
        }
        for word in words {
            let version = word.trim_end_matches([')', ',']).strip_prefix("GLIBC_").and_then(Version::find);
            if let Some(version) = version
                && newest.as_ref().is_none_or(|newest| newest.is_older_than(&version))
            {
                newest = Some(version);
            }
        }
    }
    binary.versions.extend(newest.map(|version| ("GLIBC".to_owned(), version.to_string())));
    binary
}

#[cfg(test)]
mod tests {
    use super::of_texts;

    #[test]
    fn the_words_of_both_tools_are_read() {
        let readelf = "Program Headers:\n  GNU_STACK      0x000000 0x0 0x0 0x000000 0x000000 RWE 0x10\n";
        assert_eq!(of_texts(readelf).executable_stack, Some(true));
        assert_eq!(of_texts(&readelf.replace("RWE", "RW")).executable_stack, Some(false));
        let objdump =
            "   STACK off    0x0 vaddr 0x0 paddr 0x0 align 2**4\n         filesz 0x0 memsz 0x0 flags rw-\n";
        assert_eq!(of_texts(objdump).executable_stack, Some(false));
        let versions = "    0x06969189 0x00 12 GLIBC_2.29\n    0x09691a75 0x00 08 GLIBC_2.2.5\n";
        assert_eq!(of_texts(versions).glibc().unwrap().to_string(), "2.29");
        let libraries =
            "  NEEDED               libcudart.so.13\n 0x01 (NEEDED)  Shared library: [libc10.so]\n";
        assert_eq!(of_texts(libraries).needed, ["libcudart.so.13", "libc10.so"]);
        assert_eq!(of_texts(""), super::Binary::default());
    }
}
