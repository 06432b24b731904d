//! The limits of a shell in the languages that have no `ulimit`: csh has `limit`, and PowerShell and Python change the
//! limits of their own process.

use super::shell_language::Language;

/// A limit in each language.
struct Limit {
    /// The option of `ulimit`.
    flag: &'static str,
    /// What csh calls it.
    of_csh: &'static str,
    /// The option of `prlimit`.
    option: &'static str,
    /// The name in Python's module `resource`.
    of_python: &'static str,
    /// The unit of `ulimit` and csh; the others count in bytes.
    unit: u64,
}

const LIMITS: [Limit; 6] = [
    Limit { flag: "-n", of_csh: "descriptors", option: "nofile", of_python: "RLIMIT_NOFILE", unit: 1 },
    Limit { flag: "-l", of_csh: "memorylocked", option: "memlock", of_python: "RLIMIT_MEMLOCK", unit: 1024 },
    Limit { flag: "-v", of_csh: "vmemoryuse", option: "as", of_python: "RLIMIT_AS", unit: 1024 },
    Limit { flag: "-u", of_csh: "maxproc", option: "nproc", of_python: "RLIMIT_NPROC", unit: 1 },
    Limit { flag: "-f", of_csh: "filesize", option: "fsize", of_python: "RLIMIT_FSIZE", unit: 1024 },
    Limit { flag: "-t", of_csh: "cputime", option: "cpu", of_python: "RLIMIT_CPU", unit: 1 },
];

/// The command, whose words after `ulimit` are given; `None` if the language has `ulimit`, or the words are not known.
pub(super) fn in_language(shell: Language, words: &str) -> Option<String> {
    let (flag, value) = words.split_once(' ')?;
    let limit = LIMITS.iter().find(|limit| limit.flag == flag)?;
    let number = match value.trim() {
        "unlimited" => None,
        number => Some(number.parse::<u64>().ok()?),
    };
    let bytes = number.map(|number| number.saturating_mul(limit.unit).to_string());
    match shell {
        Language::Posix | Language::Fish | Language::Nushell => None,
        Language::Csh => Some(match number {
            None => format!("unlimit {}", limit.of_csh),
            Some(number) => format!("limit {} {number}", limit.of_csh),
        }),
        // The colon leaves the hard limit as it is.
        Language::PowerShell => {
            let bytes = bytes.unwrap_or_else(|| "unlimited".to_owned());
            Some(format!("prlimit --pid $PID --{}={bytes}:", limit.option))
        }
        Language::Notebook => {
            let name = limit.of_python;
            let bytes = bytes.unwrap_or_else(|| "r.RLIM_INFINITY".to_owned());
            Some(format!("import resource as r; r.setrlimit(r.{name}, ({bytes}, r.getrlimit(r.{name})[1]))"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_raises_its_limits() {
        let all = |words: &str| {
            [Language::Csh, Language::PowerShell, Language::Notebook]
                .map(|shell| in_language(shell, words).unwrap())
        };
        assert_eq!(
            all("-n 4096"),
            [
                "limit descriptors 4096",
                "prlimit --pid $PID --nofile=4096:",
                "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (4096, r.getrlimit(r.RLIMIT_NOFILE)[1]))",
            ]
        );
        assert_eq!(
            all("-v unlimited"),
            [
                "unlimit vmemoryuse",
                "prlimit --pid $PID --as=unlimited:",
                "import resource as r; r.setrlimit(r.RLIMIT_AS, (r.RLIM_INFINITY, r.getrlimit(r.RLIMIT_AS)[1]))",
            ]
        );
        assert_eq!(all("-l 64")[1], "prlimit --pid $PID --memlock=65536:");
        assert_eq!(in_language(Language::Fish, "-n 4096"), None);
        assert_eq!(in_language(Language::Csh, "-x 4096"), None);
    }
}
