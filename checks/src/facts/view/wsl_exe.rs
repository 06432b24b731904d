//! The output of `wsl.exe`: whether WSL is installed, its versions, its distributions, and the
//! virtual machine as a distribution sees it.

use super::meminfo::Memory;
use crate::facts::answer::{Fact, Output, Unknown};
use crate::facts::host::Host;
use crate::wsl::exe_output::{self, Distribution, Trouble, Versions};
use crate::wsl::vm::Vm;

/// The state of WSL on this PC, as `wsl.exe` reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WslInstallation {
    /// Whether there is a `wsl.exe`.
    pub has_exe: bool,
    /// Whether `--status` succeeded and printed a default version.
    pub works: bool,
    /// Whether `wsl.exe` predates `wsl --install`.
    pub is_too_old: bool,
    /// From `--version`, which the WSL that is part of Windows does not support.
    pub versions: Option<Versions>,
    /// The version, 1 or 2, that new distributions get.
    pub default_version: Option<u8>,
    /// From `--list --verbose`.
    pub distributions: Vec<Distribution>,
    /// Why WSL 2 cannot run, from `--status`.
    pub trouble: Option<Trouble>,
}

impl Host {
    /// The output of `wsl.exe` with these arguments; `None` where there is no `wsl.exe`.
    pub fn wsl_exe(&self, arguments: &[&str]) -> Fact<Option<Output>> {
        self.wsl_exe_any(&[arguments])
    }

    /// The output of `wsl.exe` with the first of several equivalent arguments that has one.
    fn wsl_exe_any(&self, spellings: &[&[&str]]) -> Fact<Option<Output>> {
        let mut first = None;
        for arguments in spellings {
            for program in ["wsl.exe", "wsl"] {
                // Only a recording may hold another spelling.
                if first.is_some() && !self.is_recorded() {
                    continue;
                }
                let words: Vec<&str> = std::iter::once(program).chain(arguments.iter().copied()).collect();
                let answer = self.windows_command(&words);
                if let Ok(Some(_)) = answer {
                    return answer;
                }
                first.get_or_insert(answer);
            }
        }
        first.unwrap_or(Ok(None))
    }

    /// `wsl --version`: `Some(None)` where WSL is part of Windows and does not know the option,
    /// `None` where there is no `wsl.exe`, or only the stub that installs WSL.
    pub fn wsl_versions(&self) -> Fact<Option<Option<Versions>>> {
        let Some(output) = self.wsl_exe_any(&[&["--version"], &["-v"]])? else { return Ok(None) };
        // Output in another language, or in UTF-16, counts as well.
        let texts = [&output.stdout, &output.stderr].map(|bytes| exe_output::decode(bytes));
        if let Some(versions) = texts.iter().find_map(|text| exe_output::versions(text)) {
            return Ok(Some(Some(versions)));
        }
        let text = texts.join("\n");
        if exe_output::trouble(&text) == Some(Trouble::NotInstalled) {
            return Ok(None);
        }
        // Help texts and errors name the program or the option in every language.
        let is_readable = exe_output::trouble(&text).is_some()
            || text.to_ascii_lowercase().contains("wsl")
            || text.contains("--");
        if is_readable || text.trim().is_empty() && !output.succeeded() {
            return Ok(Some(None));
        }
        Err(Unknown::because("the output of `wsl.exe --version` cannot be parsed"))
    }

    /// The output of `wsl --status`; `None` where there is no `wsl.exe`.
    pub fn wsl_status(&self) -> Fact<Option<String>> {
        Ok(self.wsl_exe(&["--status"])?.map(|output| both_streams(&output)))
    }

    /// The output of `wsl --list --verbose`; `None` where there is no `wsl.exe`.
    pub fn wsl_list(&self) -> Fact<Option<String>> {
        let output = self.wsl_exe_any(&[&["-l", "-v"], &["--list", "--verbose"]])?;
        Ok(output.map(|output| both_streams(&output)))
    }

    /// Whether `wsl --list --verbose` ends with an error.
    pub(crate) fn wsl_list_fails(&self) -> bool {
        let output = self.wsl_exe_any(&[&["-l", "-v"], &["--list", "--verbose"]]);
        output.is_ok_and(|output| output.is_some_and(|output| !output.succeeded()))
    }

    /// What `wsl.exe` reports about WSL on this PC.
    pub fn wsl_installation(&self) -> Fact<WslInstallation> {
        let Some(output) = self.wsl_exe(&["--status"])? else { return Ok(WslInstallation::default()) };
        let text = both_streams(&output);
        let status = exe_output::status(&text);
        let mut found = WslInstallation {
            has_exe: true,
            works: output.succeeded() && status.default_version.is_some(),
            // The help text of a wsl.exe that predates `--install` lists its options.
            is_too_old: text.contains("--export") && !text.contains("--install"),
            default_version: status.default_version,
            trouble: status.trouble,
            ..WslInstallation::default()
        };
        if found.works {
            let stdout = |arguments: &[&str]| {
                let output = self.wsl_exe(arguments)?.filter(Output::succeeded);
                Ok(output.map(|output| exe_output::decode(&output.stdout)).unwrap_or_default())
            };
            found.versions = exe_output::versions(&stdout(&["--version"])?);
            found.distributions = exe_output::distributions(&stdout(&["-l", "-v"])?);
        }
        Ok(found)
    }

    /// Whether the virtual machine of WSL runs: at least one distribution does.
    pub fn is_wsl_running(&self) -> Fact<bool> {
        // One name per line; if none runs, a translated sentence and a failure.
        let output = self.wsl_exe(&["-l", "--running", "-q"])?.filter(Output::succeeded);
        Ok(output.is_some_and(|output| !exe_output::decode(&output.stdout).trim().is_empty()))
    }

    /// The virtual machine of WSL as a distribution sees it. Asking starts it.
    pub fn wsl_vm_of(&self, distribution: &str) -> Fact<Option<Vm>> {
        let script = "nproc; cat /proc/meminfo";
        let arguments = ["-d", distribution, "-u", "root", "--exec", "sh", "-c", script];
        let Some(output) = self.wsl_exe(&arguments)?.filter(Output::succeeded) else { return Ok(None) };
        let text = exe_output::decode(&output.stdout);
        let (processors, meminfo) = text.split_once('\n').unwrap_or_default();
        let processors = processors.trim().parse().ok();
        let memory = Memory::from_meminfo(meminfo);
        Ok(processors.zip(memory).map(|(processors, memory)| Vm {
            memory: memory.total,
            swap: memory.swap_total,
            processors,
        }))
    }
}

fn both_streams(output: &Output) -> String {
    format!("{}\n{}", exe_output::decode(&output.stdout), exe_output::decode(&output.stderr))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn windows(commands: Value) -> Host {
        Host::from_value(json!({ "version": 1, "os": "windows", "commands": commands })).unwrap().0
    }

    #[test]
    fn a_pc_without_wsl_has_nothing_installed() {
        let absent = windows(json!({ "wsl.exe --status": null }));
        assert_eq!(absent.wsl_installation().unwrap(), WslInstallation::default());
        let stub = windows(json!({ "wsl.exe --status": { "exit": 50, "stdout": "wsl.exe --install" } }));
        let found = stub.wsl_installation().unwrap();
        assert_eq!((found.has_exe, found.works, found.trouble), (true, false, Some(Trouble::NotInstalled)));
    }

    #[test]
    fn versions_and_distributions_are_read() {
        let host = windows(json!({
            "wsl.exe --status": "Distribuzione predefinita: Ubuntu\nVersione predefinita: 2\n",
            "wsl.exe --version": "Versione WSL: 2.5.7.0\nVersione kernel: 6.6.87.1-1\n",
            "wsl.exe -l -v": "  NOME      STATO        VERSIONE\n* Ubuntu    Arrestato    2\n",
        }));
        let found = host.wsl_installation().unwrap();
        assert!(found.works && found.versions.is_some() && found.trouble.is_none(), "{found:?}");
        assert_eq!(found.distributions[0].name, "Ubuntu");
    }

    #[test]
    fn the_virtual_machine_is_read_from_a_distribution() {
        let command = "wsl.exe -d Ubuntu -u root --exec sh -c 'nproc; cat /proc/meminfo'";
        let host = windows(json!({ command: "8\nMemTotal: 1024 kB\nSwapTotal: 2 kB\n" }));
        let vm = host.wsl_vm_of("Ubuntu").unwrap().unwrap();
        assert_eq!((vm.memory, vm.swap, vm.processors), (1 << 20, 2048, 8));
    }
}
