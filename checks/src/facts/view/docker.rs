//! Docker and Podman as a machine has them: which daemon this user's `docker` talks to, how NVIDIA's runtime for
//! containers is set, and what recorded commands of such programs said.

use serde_json::Value;

use crate::facts::host::Host;

/// Which Docker the command `docker` of this user reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Daemon {
    /// The daemon of the machine, which runs as root.
    System,
    /// A daemon of the user, without root.
    Rootless,
    /// The virtual machine of Docker Desktop.
    Desktop,
}

/// Settings of NVIDIA's runtime for containers that decide whether containers get their GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// Containers are not allowed to use the devices, because the one who starts them cannot allow it.
    pub no_cgroups: Option<bool>,
    /// `auto`, `legacy`, `cdi`, …
    pub mode: Option<String>,
    /// The program that writes the loader's list of libraries in a container; `@` means that it is the host's.
    pub ldconfig: Option<String>,
}

/// Where NVIDIA's runtime has its settings.
pub const RUNTIME_CONFIG: &str = "/etc/nvidia-container-runtime/config.toml";

impl Host {
    /// The settings of NVIDIA's runtime for containers; `None` if the file does not exist or is unknown.
    pub fn runtime_config(&self) -> Option<RuntimeConfig> {
        self.text(RUNTIME_CONFIG).ok().flatten().map(|text| RuntimeConfig::read(&text))
    }

    /// Whether `docker` talks to Podman, which has its own settings, by the variable that Podman's manual names for that.
    pub fn docker_reaches_podman(&self) -> bool {
        self.env("DOCKER_HOST")
            .is_ok_and(|address| address.is_some_and(|address| address.contains("/podman/")))
    }

    /// Which daemon `docker` reaches, as the variables, the client's settings or recorded commands say.
    pub fn docker_daemon(&self) -> Daemon {
        let set = |name: &str| self.env(name).ok().flatten().filter(|value| !value.is_empty());
        if let Some(address) = set("DOCKER_HOST") {
            return if address.contains("/.docker/desktop/") {
                Daemon::Desktop
            } else if address.starts_with("unix:///run/user/") && !self.docker_reaches_podman() {
                Daemon::Rootless
            } else {
                Daemon::System
            };
        }
        let info = self.docker_info();
        if info.as_ref().is_some_and(|text| text.contains("Operating System: Docker Desktop")) {
            return Daemon::Desktop;
        }
        let is_rootless = |text: &String| text.lines().any(|line| line.trim() == "rootless");
        if info.as_ref().is_some_and(is_rootless) {
            return Daemon::Rootless;
        }
        match set("DOCKER_CONTEXT").or_else(|| self.docker_context()).as_deref() {
            Some("desktop-linux") => Daemon::Desktop,
            Some("rootless") => Daemon::Rootless,
            _ => Daemon::System,
        }
    }

    /// What `docker info` said, in a recording.
    pub(crate) fn docker_info(&self) -> Option<String> {
        let outputs = self.recorded_outputs("docker").into_iter().map(|(_, output)| output.all_text());
        outputs.into_iter().find(|text| text.contains("Server Version:") || text.contains("Runtimes:"))
    }

    /// What recorded commands of Docker said, or of Podman.
    pub(crate) fn docker_outputs(&self) -> Vec<String> {
        let outputs =
            ["docker", "docker-compose", "nerdctl"].iter().flat_map(|name| self.recorded_outputs(name));
        outputs.map(|(_, output)| output.all_text()).collect()
    }

    /// What recorded commands that start containers said.
    pub(crate) fn container_outputs(&self) -> Vec<String> {
        let podman = ["podman", "podman-compose"].iter().flat_map(|name| self.recorded_outputs(name));
        self.docker_outputs().into_iter().chain(podman.map(|(_, output)| output.all_text())).collect()
    }

    /// The context that the client uses: its settings, or a recorded `docker context ls`, in which it has a star.
    fn docker_context(&self) -> Option<String> {
        let listed = self.recorded_outputs("docker").into_iter().find_map(|(line, output)| {
            let text = output.text();
            let starred = |line: &str| {
                let mut words = line.split_whitespace();
                let name = words.next()?;
                let name = name.strip_suffix('*').or((words.next() == Some("*")).then_some(name))?;
                Some(name.to_owned())
            };
            line.contains("context").then(|| text.lines().find_map(starred))?
        });
        let folder = self.env("DOCKER_CONFIG").ok().flatten().filter(|folder| !folder.is_empty());
        let folder = folder.or_else(|| Some(format!("{}/.docker", self.env("HOME").ok()??)))?;
        listed.or_else(|| {
            let text = self.text(&format!("{folder}/config.json")).ok().flatten()?;
            let settings: Value = serde_json::from_str(&text).ok()?;
            settings.get("currentContext")?.as_str().map(ToOwned::to_owned)
        })
    }
}

impl RuntimeConfig {
    /// Reads the few settings of interest from TOML. A line that begins with `#` is the default, as a comment.
    fn read(text: &str) -> Self {
        let mut found = Self::default();
        let mut section = "";
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                section = name.trim();
                continue;
            }
            let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else {
                continue;
            };
            let value = value.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
            match (section, key.trim()) {
                ("nvidia-container-cli", "no-cgroups") => found.no_cgroups = value.parse().ok(),
                ("nvidia-container-cli", "ldconfig") => found.ldconfig = Some(value.to_owned()),
                ("nvidia-container-runtime", "mode") => found.mode = Some(value.to_owned()),
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_that_are_comments_do_not_count() {
        let text = "[nvidia-container-cli]\n#no-cgroups = true\nldconfig = \"@/sbin/ldconfig.real\"\n\n\
                    [nvidia-container-runtime]\nmode = \"cdi\"  # since the update\n\
                    [nvidia-container-runtime.modes.cdi]\nmode = \"x\"\n";
        let config = RuntimeConfig::read(text);
        assert_eq!((config.no_cgroups, config.mode.as_deref()), (None, Some("cdi")));
        assert_eq!(config.ldconfig.as_deref(), Some("@/sbin/ldconfig.real"));
        let config = RuntimeConfig::read("[nvidia-container-cli]\n  no-cgroups=true\n");
        assert_eq!(config.no_cgroups, Some(true));
    }

    #[test]
    fn the_daemon_is_known_from_several_sources() {
        let daemon = |section: &str, rows: Value| {
            let mut recording = json!({ "version": 1, "os": "linux", "env": { "HOME": "/home/mara" } });
            for (name, row) in rows.as_object().unwrap() {
                recording[section][name] = row.clone();
            }
            Host::from_value(recording).unwrap().0.docker_daemon()
        };
        assert_eq!(daemon("env", json!({})), Daemon::System);
        assert_eq!(
            daemon("env", json!({ "DOCKER_HOST": "unix:///run/user/1000/docker.sock" })),
            Daemon::Rootless
        );
        assert_eq!(daemon("env", json!({ "DOCKER_CONTEXT": "desktop-linux" })), Daemon::Desktop);
        let file = json!({ "/home/mara/.docker/config.json": "{\"currentContext\": \"desktop-linux\"}" });
        assert_eq!(daemon("files", file), Daemon::Desktop);
        let list =
            "NAME              DESCRIPTION\ndefault           Current\ndesktop-linux *   Docker Desktop\n";
        assert_eq!(daemon("commands", json!({ "docker context ls": list })), Daemon::Desktop);
        let info = "Server:\n Server Version: 29.1.3\n Security Options:\n  seccomp\n  rootless\n";
        assert_eq!(daemon("commands", json!({ "docker info": info })), Daemon::Rootless);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".*") {
            RuntimeConfig::read(&text);
        }
    }
}
