//! Which processes use a GPU's memory. A desktop always uses some, and stopping it would cost the
//! user their screen, so only compute programs count.

use crate::facts::{Gpu, GpuMemory, GpuProcess};

/// Memory use below this part is not reported.
const NOTEWORTHY: f64 = 0.1;
/// If the driver does not report which programs use it, a desktop may well use less than this.
const DESKTOP: f64 = 0.5;

/// Desktop programs, by the beginnings of their names.
const OF_DESKTOPS: [&str; 60] = [
    "xorg",
    "xwayland",
    "gnome-",
    "mutter",
    "kwin",
    "plasma",
    "ksmserver",
    "kded",
    "xfwm4",
    "xfce",
    "cinnamon",
    "marco",
    "mate-",
    "compiz",
    "budgie",
    "cosmic-",
    "sway",
    "hyprland",
    "weston",
    "gdm",
    "sddm",
    "lightdm",
    "xdg-desktop",
    "nautilus",
    "dolphin",
    "firefox",
    "chrom",
    "google-chrome",
    "brave",
    "opera",
    "vivaldi",
    "msedge",
    "thunderbird",
    "electron",
    "code",
    "discord",
    "slack",
    "teams",
    "ms-teams",
    "signal",
    "telegram",
    "spotify",
    "steam",
    "vlc",
    "mpv",
    "totem",
    "explorer",
    "dwm",
    "csrss",
    "winlogon",
    "searchhost",
    "startmenu",
    "shellexperience",
    "applicationframe",
    "systemsettings",
    "textinputhost",
    "lockapp",
    "nvidia share",
    "nvidia overlay",
    "widgets",
];

/// Whether programs other than desktop programs use a significant part of a card's memory.
pub(in crate::checks) fn is_taken(gpu: &Gpu, memory: &GpuMemory) -> bool {
    let used = memory.total.saturating_sub(memory.free);
    let is_more = |bytes: u64, part: f64| bytes as f64 > memory.total as f64 * part;
    let computing = computing(gpu);
    if computing.is_empty() {
        // A dead or unlisted process may use it, but not a known desktop.
        return is_more(used, DESKTOP) && gpu.graphics_processes().unwrap_or_default().is_empty();
    }
    // If it is unknown how much a process uses, it may use all.
    let held = computing.iter().map(|process| process.memory).sum::<Option<u64>>();
    is_more(held.map_or(used, |held| held.min(used)), NOTEWORTHY)
}

/// The compute programs on a card, as far as the driver reports them.
pub(super) fn computing(gpu: &Gpu) -> Vec<GpuProcess> {
    let drawing = gpu.graphics_processes().unwrap_or_default();
    let draws = |process: &GpuProcess| drawing.iter().any(|other| other.pid == process.pid);
    let mut computing = gpu.processes().unwrap_or_default();
    computing.retain(|process| !draws(process) && !process.name.as_deref().is_some_and(is_of_desktop));
    computing
}

fn is_of_desktop(name: &str) -> bool {
    let program = short(name).to_ascii_lowercase();
    OF_DESKTOPS.iter().any(|beginning| program.starts_with(beginning))
}

/// A program's name without its folders.
pub(super) fn short(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_a_desktop_are_known_by_name() {
        for name in
            ["/usr/lib/xorg/Xorg", "/usr/bin/gnome-shell", "firefox", r"C:\Windows\explorer.exe", "dwm.exe"]
        {
            assert!(is_of_desktop(name), "{name}");
        }
        for name in
            ["python3", "/usr/bin/ollama", "yolo-trainer", r"C:\Python312\python.exe", "python train.py"]
        {
            assert!(!is_of_desktop(name), "{name}");
        }
    }
}
