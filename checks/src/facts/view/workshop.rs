//! Distrobox and Toolbx: containers of Podman or Docker that show the home folder, the devices and the network of their
//! host, for work with the programs of another distribution. Their own commands make and start them.

use crate::facts::host::Host;

/// The program that made such a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workshop {
    /// Distrobox, with the name of the container.
    Distrobox(String),
    /// Toolbx, with the name of the container.
    Toolbx(String),
}

impl Host {
    /// The program that made this container, if it is one of these.
    pub(crate) fn workshop(&self) -> Option<Workshop> {
        const ENVIRONMENT: &str = "/run/.containerenv";
        if !self.is_container() {
            return None;
        }
        let set = |name: &str| self.env(name).ok().flatten().filter(|value| !value.is_empty());
        let text = self.text(ENVIRONMENT).ok().flatten().unwrap_or_default();
        let named =
            || text.lines().find_map(|line| Some(line.strip_prefix("name=")?.trim_matches('"').to_owned()));
        if set("DISTROBOX_ENTER_PATH").is_some() || set("DISTROBOX_HOST_HOME").is_some() {
            let name = set("CONTAINER_ID").or_else(named);
            return Some(Workshop::Distrobox(name.unwrap_or("<name>".to_owned())));
        }
        if set("TOOLBOX_PATH").is_some() || self.exists("/run/.toolboxenv") == Ok(true) {
            return Some(Workshop::Toolbx(named().unwrap_or("<name>".to_owned())));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn workshop(env: Value, files: Value) -> Option<Workshop> {
        let recording = json!({ "version": 1, "os": "linux", "env": env, "files": files });
        Host::from_value(recording).unwrap().0.workshop()
    }

    #[test]
    fn their_variables_and_files_tell_them_from_other_containers() {
        let file = || json!({ "/run/.containerenv": "engine=\"podman-5.2\"\nname=\"tools\"\n" });
        let distrobox = json!({ "DISTROBOX_ENTER_PATH": "/usr/bin/distrobox-enter", "CONTAINER_ID": "cuda" });
        assert_eq!(workshop(distrobox, file()), Some(Workshop::Distrobox("cuda".to_owned())));
        let toolbx = json!({ "TOOLBOX_PATH": "/usr/bin/toolbox" });
        assert_eq!(workshop(toolbx, file()), Some(Workshop::Toolbx("tools".to_owned())));
        assert_eq!(workshop(json!({}), file()), None);
        let on_the_host = json!({ "/.dockerenv": null, "/proc/1/cgroup": "0::/init.scope\n" });
        assert_eq!(workshop(json!({ "TOOLBOX_PATH": "/usr/bin/toolbox" }), on_the_host), None);
    }
}
