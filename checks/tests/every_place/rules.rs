//! Which commands and texts may be said in which place.

use crate::places::{GUESTS, JOBS, MACHINES, SHELLS};

/// A host whose sentence below ends in this is somebody else's machine.
pub(crate) const ELSEWHERE: [&str; 2] = ["# on the host", "# on the node"];

/// Programs that exist on some distributions only.
pub(crate) const PROGRAMS: [(&[&str], &[&str]); 13] = [
    (&["apt ", "dpkg ", "update-initramfs"], &["ubuntu", "mint", "pop", "debian", "lmde", "devuan", "sid"]),
    (&["ubuntu-drivers"], &["ubuntu", "mint"]),
    (&["system76-"], &["pop"]),
    (&["dnf ", "akmods --"], &["fedora", "nobara", "rocky", "amazon", "alibaba"]),
    (&["bootc "], &["rhel-image"]),
    (
        &["rpm "],
        &[
            "fedora",
            "silverblue",
            "rhel-image",
            "nobara",
            "rocky",
            "amazon",
            "alibaba",
            "leap",
            "sles",
            "tumbleweed",
            "slowroll",
            "microos",
        ],
    ),
    (&["zypper "], &["leap", "sles", "tumbleweed", "slowroll", "microos"]),
    (&["transactional-update"], &["microos"]),
    (&["emerge "], &["gentoo"]),
    (&["pacman ", "mkinitcpio"], &["arch", "manjaro"]),
    (&["mhwd "], &["manjaro"]),
    (&["nixos-rebuild"], &["nixos"]),
    (&["xbps-install"], &["void"]),
];

/// Why a command must not be advised in a place.
pub(crate) fn misfit(command: &str, place: &str) -> Option<&'static str> {
    let is_guest = GUESTS.contains(&place);
    if ELSEWHERE.iter().any(|end| command.ends_with(end)) {
        return None;
    }
    if place == "rhel-image" && command.ends_with("# in the definition of the image") {
        let is_of_builder = command.contains("uname -r") || command.contains("generate_mok");
        return is_of_builder.then_some("the machine that builds an image is another one");
    }
    // Distributions in WSL and images of containers differ.
    let programs = if ["wsl", "docker-in-wsl"].contains(&place) { &PROGRAMS[..0] } else { &PROGRAMS[..] };
    for (programs, distributions) in programs {
        let is_like_ubuntu = is_guest || SHELLS.contains(&place);
        let fits = distributions.contains(&place) || is_like_ubuntu && distributions.contains(&"ubuntu");
        if !fits && programs.iter().any(|program| command.contains(program)) {
            return Some("this distribution has no such program");
        }
    }
    let has = |word: &str| command.contains(word);
    if place == "windows"
        && ["sudo ", "export ", "unset ", "rm "].iter().any(|start| command.starts_with(start))
    {
        return Some("PowerShell has no such command");
    }
    if (is_guest || place == "docker-in-wsl") && has("reboot") {
        return Some("the machine is not the user's");
    }
    if is_guest && place != "lxc" && (has("modprobe") || has("rmmod") || has("dkms ") || has("akmods --")) {
        return Some("the kernel is not the user's");
    }
    if JOBS.contains(&place) && has("unset CUDA_VISIBLE_DEVICES") {
        return Some("the batch system has set it");
    }
    if (JOBS.contains(&place) || ["pod", "colab", "kaggle", "runpod", "apptainer"].contains(&place))
        && has("sudo ")
    {
        return Some("the user is not an administrator");
    }
    // LXC is a whole system, in which Docker may be installed.
    let has_docker = ["docker", "lxc", "proxmox"].contains(&place);
    if is_guest && !has_docker && (has("docker run") || has("docker restart")) {
        return Some("this is no container of Docker");
    }
    if place == "nixos" && (has("tee /etc/") || has("dkms ") || has("systemctl enable")) {
        return Some("NixOS would undo it");
    }
    if place == "nixos" && (has("nvidia-ctk ") || has("mokutil ")) {
        return Some("NixOS has an option for it, or no such thing");
    }
    if place == "microos" && (has("sudo zypper install") || has("sudo zypper dup")) {
        return Some("the system cannot be written");
    }
    if place == "alibaba" && (has("/repos/rhel") || has("epel-release")) {
        return Some("its releases are not those of RHEL");
    }
    if ["lmde", "devuan", "sid"].contains(&place) && (has("/repos/debian12") || has("contrib non-free/")) {
        return Some("it is made from Debian 13 or later");
    }
    if MACHINES.contains(&place) && (has("nvidia-driver") || has("ubuntu-drivers") || has("/cuda/repos/")) {
        return Some("the driver comes with the system, or there is none");
    }
    if place == "macos" && (has("sudo ") || has("ldconfig")) {
        return Some("this is for Linux");
    }
    if has("pacman -Sy ") || has("pacman -S ") {
        return Some("a partial upgrade");
    }
    // A limit of a service of systemd is raised by systemd.
    if ["alpine", "void", "devuan"].contains(&place) && has("systemctl") && !has(".service") {
        return Some("there is no systemd");
    }
    None
}

/// Why a sentence must not be said in a place.
pub(crate) fn misfit_of_text(id: &str, text: &str, place: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if JOBS.contains(&place)
        && ["gpu.hidden", "gpu.visible-unreadable", "gpu.order"].contains(&id)
        && has(&["unset "])
    {
        return Some("the batch system has set it");
    }
    if ["colab", "kaggle", "runpod"].contains(&place)
        && has(&["start the container", "run the container", "on the host", "container's host", "Dockerfile"])
    {
        return Some("the service starts the container");
    }
    let is_guest = GUESTS.contains(&place) && place != "lxc" && place != "proxmox";
    // Somebody else is asked, or does it.
    let is_passed_on =
        has(&["administrator", "the host", "the node", "on another", "its owner", "tell ", "report "]);
    if is_guest && !is_passed_on && has(&["restart the machine", "reboot"]) {
        return Some("the machine is not the user's");
    }
    if is_guest && !is_passed_on && has(&["firmware", "BIOS", "power cable", "reseat", "Secure Boot"]) {
        return Some("the user has no access to the hardware");
    }
    None
}

/// Why a sentence and its commands must not be said together.
pub(crate) fn misfit_of_remedy(text: &str, commands: &[String]) -> Option<&'static str> {
    const OF_USER: [&str; 6] =
        ["have the machine", "yourself", "your logins", "YOLO_HOME", "--project", "plug the laptop"];
    // What follows the name is for the administrator alone.
    let passed_on = text.split_once(": ").filter(|(who, _)| who.starts_with("ask the administrator of"));
    if passed_on.is_some_and(|(_, rest)| {
        rest.starts_with("nothing") || OF_USER.iter().any(|word| rest.contains(word))
    }) {
        return Some("the user can do this alone");
    }
    if text.contains(": or ") {
        return Some("one part of two begins with a word that joins them");
    }
    if text.ends_with("can change its machines") && !commands.is_empty() {
        return Some("a new session needs no command");
    }
    let is_passed_on = ["on the host:", "ask the administrator"].iter().any(|start| text.starts_with(start));
    let of_shell = |command: &String| ["export ", "unset "].iter().any(|start| command.starts_with(start));
    if is_passed_on && commands.iter().any(of_shell) {
        return Some("a variable of the user's own shell is for nobody else");
    }
    None
}

/// Why commands must not be typed one after the other in a place.
pub(crate) fn misfit_of_commands(id: &str, commands: &[String], place: &str) -> Option<&'static str> {
    if id == "gpu.driver-missing" && matches!(commands, [only] if only == "sudo reboot") {
        return Some("a restart installs nothing");
    }
    const MAKES: [&str; 4] = ["update-grub", "grub2-mkconfig", "grub-mkconfig", "grub.cfg"];
    let has = |word: &str| commands.iter().any(|command| command.contains(word));
    if has("/etc/default/grub") && !MAKES.iter().any(|word| has(word)) {
        return Some("GRUB does not read this file when it starts");
    }
    let in_bash = commands.first().is_some_and(|command| command.starts_with("bash  # "));
    if !SHELLS.contains(&place) || place == "snap" || in_bash {
        return None;
    }
    for command in commands.iter().filter(|command| !command.contains("  # on the ")) {
        let starts = |words: &[&str]| words.iter().any(|word| command.starts_with(word));
        let is_of_posix = (["csh", "nushell"].contains(&place) && command.contains("$(")
            || place == "nushell" && command.contains("&&"))
            // Nushell's own way to put a value into a text.
            && !command.starts_with("$env.");
        // A comment would become a part of the value.
        let has_comment = command.contains("# ") && (command.ends_with('\'') || command.starts_with("%env "));
        if has_comment
            || starts(&["export ", "unset "])
            || starts(&["ulimit "]) && !["fish", "nushell"].contains(&place)
            || is_of_posix
        {
            return Some("this shell does not understand it");
        }
    }
    None
}
