//! Whether Linux uses its own local ports in mirrored mode. Windows and WSL then share one address, and WSL reserves some
//! ports at Windows, which it writes to ip_local_port_range; answers to all others are dropped without a message. A
//! file of sysctl that sets this range is applied after that, at each start.

use super::config_values;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

pub(super) static CHECK: Check = Check {
    question: "Does Linux use the ports that mirrored networking reserved?",
    reports: &["wsl.local-ports"],
    preflight: false,
    run,
};

const KEY: &str = "net.ipv4.ip_local_port_range";
/// Where the kernel says which range is in force.
const IN_FORCE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const FOLDERS: [&str; 4] = ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];

fn run(host: &Host, _: &Intent) -> Answer {
    if !host.is_wsl2()? || host.is_container() {
        return Ok(Vec::new());
    }
    let mode =
        host.wslconfig().ok().and_then(|config| config.value("networkingMode").map(str::to_ascii_lowercase));
    if mode.as_deref().map(str::trim) != Some("mirrored") {
        return Ok(Vec::new());
    }
    // Windows that cannot mirror its network gives WSL another one; a recording may say so, and live the range in force decides.
    let falls_back = |text: &str| text.to_ascii_lowercase().contains("falling back to networkingmode");
    let said = host.recorded_commands();
    if config_values::is_mirroring_unsupported(host)
        || said.iter().any(|(_, output)| falls_back(&output.text()) || falls_back(&output.error_text()))
    {
        return Ok(Vec::new());
    }
    let Some(now) = host.text(IN_FORCE).ok().flatten() else { return Ok(Vec::new()) };
    let Some((file, line)) = setting(host, &now) else { return Ok(Vec::new()) };
    let title = format!("{file} replaces the local ports that WSL reserved for mirrored networking");
    Ok(vec![
        Finding::new("wsl.local-ports", title)
            .seen(line)
            .remedy(format!(
                "remove the line with {KEY} from {file} and start WSL again; or write networkingMode=nat in .wslconfig"
            ))
            .command(format!("sudoedit {}", quote(&file)))
            .command(super::SHUTDOWN),
    ])
}

/// The file that has set the range that is in force, and its line. Without systemd nothing may have read the files.
fn setting(host: &Host, now: &str) -> Option<(String, String)> {
    let of_folders = FOLDERS.iter().flat_map(|folder| {
        let names = host.folder(folder).ok().flatten().unwrap_or_default();
        names.into_iter().filter(|name| name.ends_with(".conf")).map(move |name| format!("{folder}/{name}"))
    });
    std::iter::once("/etc/sysctl.conf".to_owned()).chain(of_folders).find_map(|file| {
        let text = host.text(&file).ok().flatten()?;
        // A path may be written with slashes; `-` in front means that an error does not matter.
        let is_it = |line: &&str| {
            let key = line.split('=').next().unwrap_or_default().trim().trim_start_matches('-');
            let value = line.split_once('=').map_or("", |(_, value)| value);
            key.replace('/', ".") == KEY && value.split_whitespace().eq(now.split_whitespace())
        };
        let line = text.lines().map(str::trim).find(is_it)?.to_owned();
        Some((file, line))
    })
}
