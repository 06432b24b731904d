//! NixOS generates what is below /etc, and its modules and services, from configuration.nix: a change by hand is lost at
//! the next start, if it works at all. So commands that make such a change become the option that does the same.

use crate::finding::Remedy;

/// The remedy without commands that change what is generated, with the options in their place.
pub(super) fn as_configuration(remedy: &mut Remedy) {
    const GENERATED: [&str; 9] = [
        "sudo tee /etc/",
        "sudo tee -a /etc/",
        "sudo mkdir -p /etc/",
        "sudo nano /etc/",
        "dkms ",
        "mokutil ",
        "systemctl enable",
        "hostnamectl ",
        "nvidia-ctk ",
    ];
    // There is no cache of the loader: the driver's libraries are in a folder of their own.
    for command in remedy.commands.iter_mut().filter(|command| *command == "sudo ldconfig") {
        "export LD_LIBRARY_PATH=/run/opengl-driver/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
            .clone_into(command);
    }
    let is_generated = |command: &String| GENERATED.iter().any(|word| command.contains(word));
    let mut options: Vec<String> = Vec::new();
    for option in
        remedy.commands.iter().filter(|command| is_generated(command)).filter_map(|line| option(line))
    {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    let before = remedy.commands.len();
    remedy.commands.retain(|command| !is_generated(command));
    if remedy.commands.len() == before {
        return;
    }
    const UNLESS: &str = "nothing if you train outside containers; otherwise ";
    let (unless, text) = match remedy.text.strip_prefix(UNLESS) {
        Some(rest) => (UNLESS, rest),
        None => ("", remedy.text.as_str()),
    };
    let options: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
    remedy.text = match options.as_slice() {
        [] => format!("{unless}in configuration.nix: {text}"),
        _ => format!("{unless}set {} in configuration.nix and apply it: {text}", options.join(" and ")),
    };
    if !remedy.commands.iter().any(|command| command.starts_with("sudo nixos-rebuild ")) {
        remedy.commands.insert(0, "sudo nixos-rebuild switch".to_owned());
    }
}

/// The option that does what a command does, if it is a known one.
fn option(command: &str) -> Option<String> {
    let services = [
        ("nvidia-persistenced", "hardware.nvidia.nvidiaPersistenced = true;"),
        ("nvidia-suspend", "hardware.nvidia.powerManagement.enable = true;"),
        ("nvidia-fabricmanager", "hardware.nvidia.datacenter.enable = true;"),
        ("docker", "virtualisation.docker.enable = true;"),
    ];
    if let Some((_, names)) = command.split_once("systemctl enable") {
        return services
            .iter()
            .find(|(name, _)| names.contains(name))
            .map(|(_, option)| (*option).to_owned());
    }
    if command.contains("nvidia-ctk ") {
        return Some("hardware.nvidia-container-toolkit.enable = true;".to_owned());
    }
    if let Some((_, name)) = command.split_once("hostnamectl set-hostname ") {
        return Some(format!("networking.hostName = \"{}\";", name.trim()));
    }
    let (written, file) = command.split_once("| sudo tee ")?;
    let file = file.trim_start_matches("-a ").split_whitespace().next()?;
    let written = written.trim().strip_prefix("echo ").or_else(|| written.trim().strip_prefix("printf "))?;
    let lines: Vec<&str> = written
        .trim_matches(['\'', '"'])
        .split("\\n")
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    option_of_file(file, &lines)
}

/// The option that puts these lines into a file of /etc.
fn option_of_file(file: &str, lines: &[&str]) -> Option<String> {
    let list = |names: &[&str]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" ");
    let inside = |folder: &str| file.strip_prefix(folder);
    if inside("/etc/modprobe.d/").is_some() {
        let blocked: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("blacklist ")).collect();
        let others: Vec<&str> =
            lines.iter().copied().filter(|line| !line.starts_with("blacklist ")).collect();
        let options = [
            (!blocked.is_empty()).then(|| format!("boot.blacklistedKernelModules = [ {} ];", list(&blocked))),
            (!others.is_empty()).then(|| format!("boot.extraModprobeConfig = \"{}\";", others.join("\\n"))),
        ];
        return Some(options.into_iter().flatten().collect::<Vec<_>>().join(" "))
            .filter(|all| !all.is_empty());
    }
    if inside("/etc/modules-load.d/").is_some() {
        return Some(format!("boot.kernelModules = [ {} ];", list(lines)));
    }
    let first = *lines.first()?;
    if inside("/etc/sysctl.d/").is_some() {
        let (name, value) = first.split_once('=')?;
        return Some(format!("boot.kernel.sysctl.\"{}\" = {};", name.trim(), value_of(value)));
    }
    if inside("/etc/security/limits.d/").is_some() {
        let [_, kind, item, value] = first.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
        return Some(format!(
            "security.pam.loginLimits = [ {{ domain = \"*\"; type = \"{kind}\"; item = \"{item}\"; value = \"{value}\"; }} ];"
        ));
    }
    if let Some(name) = inside("/etc/systemd/system/").and_then(|rest| rest.split_once(".service.d/")) {
        let (setting, value) = lines.iter().find_map(|line| line.split_once('='))?;
        return Some(format!("systemd.services.{}.serviceConfig.{setting} = \"{value}\";", name.0));
    }
    if file == "/etc/wsl.conf" {
        let section = first.strip_prefix('[')?.strip_suffix(']')?;
        let (name, value) = lines.get(1)?.split_once('=')?;
        let value = value_of(value);
        return match (section, name.trim()) {
            ("user", "default") => Some(format!("wsl.defaultUser = {value};")),
            // It is always on.
            ("boot", "systemd") => None,
            (section, name) => Some(format!("wsl.wslConf.{section}.{name} = {value};")),
        };
    }
    None
}

/// A value as configuration.nix has it: text in quotation marks.
fn value_of(text: &str) -> String {
    match text.trim().trim_matches('"') {
        bare if matches!(bare, "true" | "false") || bare.parse::<u64>().is_ok() => bare.to_owned(),
        text => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::finding::Finding;

    fn remedy(text: &str, commands: &[&str]) -> (String, Vec<String>) {
        let finding = Finding::new("system.open-files", "…").remedy(text);
        let mut remedy =
            commands.iter().fold(finding, |finding, line| finding.command(*line)).remedy.unwrap();
        as_configuration(&mut remedy);
        (remedy.text, remedy.commands)
    }

    #[test]
    fn each_generated_file_has_its_option() {
        for (command, expected) in [
            (
                "echo \"$USER - memlock unlimited\" | sudo tee /etc/security/limits.d/90-memlock.conf",
                "security.pam.loginLimits = [ { domain = \"*\"; type = \"-\"; item = \"memlock\"; value = \"unlimited\"; } ];",
            ),
            (
                "printf '[Service]\\nLimitNOFILE=4096\\n' | sudo tee /etc/systemd/system/training.service.d/limits.conf",
                "systemd.services.training.serviceConfig.LimitNOFILE = \"4096\";",
            ),
            (
                "echo 'options nvidia_uvm uvm_disable_hmm=1' | sudo tee /etc/modprobe.d/uvm.conf",
                "boot.extraModprobeConfig = \"options nvidia_uvm uvm_disable_hmm=1\";",
            ),
            (
                r"printf 'blacklist nova_core\nblacklist nova\n' | sudo tee /etc/modprobe.d/blacklist-nova.conf",
                "boot.blacklistedKernelModules = [ \"nova_core\" \"nova\" ];",
            ),
            (
                r"printf 'nvidia\nnvidia_uvm\n' | sudo tee /etc/modules-load.d/nvidia.conf",
                "boot.kernelModules = [ \"nvidia\" \"nvidia_uvm\" ];",
            ),
            (
                "echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/90-user-namespaces.conf",
                "boot.kernel.sysctl.\"kernel.unprivileged_userns_clone\" = 1;",
            ),
            (
                "echo 'net.ipv4.ip_local_port_range=32768 60999' | sudo tee /etc/sysctl.d/90-ports.conf",
                "boot.kernel.sysctl.\"net.ipv4.ip_local_port_range\" = \"32768 60999\";",
            ),
            (
                r"printf '[network]\ngenerateResolvConf=false\n' | sudo tee -a /etc/wsl.conf",
                "wsl.wslConf.network.generateResolvConf = false;",
            ),
            (r"printf '[user]\ndefault=mara\n' | sudo tee -a /etc/wsl.conf", "wsl.defaultUser = \"mara\";"),
            (
                r#"printf '[automount]\noptions="metadata"\n' | sudo tee -a /etc/wsl.conf"#,
                "wsl.wslConf.automount.options = \"metadata\";",
            ),
            ("sudo systemctl enable nvidia-persistenced", "hardware.nvidia.nvidiaPersistenced = true;"),
            ("sudo hostnamectl set-hostname NEW-NAME", "networking.hostName = \"NEW-NAME\";"),
        ] {
            let (text, commands) = remedy("do it", &[command]);
            assert_eq!(text, format!("set `{expected}` in configuration.nix and apply it: do it"));
            assert_eq!(commands, ["sudo nixos-rebuild switch"]);
        }
    }

    #[test]
    fn what_is_optional_stays_so() {
        let text = "nothing if you train outside containers; otherwise install the toolkit";
        let (text, commands) = remedy(
            text,
            &["sudo nvidia-ctk runtime configure --runtime=docker", "sudo systemctl restart docker"],
        );
        assert_eq!(
            text,
            "nothing if you train outside containers; otherwise set `hardware.nvidia-container-toolkit.enable = true;` in \
             configuration.nix and apply it: install the toolkit"
        );
        assert_eq!(commands, ["sudo nixos-rebuild switch", "sudo systemctl restart docker"]);
        let kept = ["sudo modprobe nvidia", "sudo reboot"];
        assert_eq!(remedy("restart", &kept), ("restart".to_owned(), kept.map(str::to_owned).to_vec()));
    }

    proptest! {
        #[test]
        fn any_command_is_read(command in "(echo |printf |'|\\\\n|\\| sudo tee |-a |/etc/(modprobe.d|wsl.conf|sysctl.d|security/limits.d)/?|a=b|\\[x\\]|\\PC){0,14}") {
            let _ = remedy("do it", &[&command]);
        }
    }
}
