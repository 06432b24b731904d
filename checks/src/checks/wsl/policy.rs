//! What the policies of a company forbid WSL on this PC (Intune, or a group policy). WSL reads them from the registry, with
//! these names: microsoft/WSL `wslpolicies.h`.

use crate::facts::{Host, WslConfig};
use crate::finding::Finding;

const KEY: &str = r"HKLM\SOFTWARE\Policies\WSL";
/// Keys of `.wslconfig`, each with the policy that lets users set it.
const SETTINGS: [(&str, &str); 5] = [
    ("kernel", "AllowKernelUserSetting"),
    ("kernelCommandLine", "AllowKernelCommandLineUserSetting"),
    ("systemDistro", "AllowSystemDistroUserSetting"),
    ("networkingMode", "AllowNetworkingModeUserSetting"),
    ("firewall", "AllowFirewallUserSetting"),
];

/// Whether a policy forbids this.
fn forbids(host: &Host, policy: &str) -> bool {
    // In WSL each question starts a program of Windows, and nothing points to a policy there.
    let is_asked = host.is_recorded() || host.is_windows().unwrap_or(false);
    let value = is_asked.then(|| host.registry(&format!(r"{KEY}\{policy}")).ok().flatten()).flatten();
    value.is_some_and(|value| matches!(value.trim(), "0" | "0x0"))
}

/// The finding, if WSL itself is forbidden.
pub(super) fn without_wsl(host: &Host) -> Option<Finding> {
    let finding = || blocked("WSL 2 cannot run: a policy of this PC forbids WSL");
    forbids(host, "AllowWSL").then(|| finding().seen(format!(r"{KEY}\AllowWSL is 0")))
}

/// The finding with this title.
pub(super) fn blocked(title: &str) -> Finding {
    Finding::new("wsl.feature-off", title)
        .because("a group policy, or the management of the company (Intune), blocks WSL on this PC")
        .remedy("ask the administrator of this PC to allow WSL; until then, train on a Linux machine")
}

/// Smart App Control: 0 off, 1 on, 2 evaluation.
const SMART: &str = r"HKLM\SYSTEM\CurrentControlSet\Control\CI\Policy\VerifiedAndReputablePolicyState";

/// The finding, where Windows does not let WSL's programs start.
pub(super) fn app_control(host: &Host) -> Finding {
    let title = "WSL 2 cannot run: Windows does not let its programs start (App Control, Device Guard)";
    let finding = Finding::new("wsl.feature-off", title);
    let is_smart = host.registry(SMART).ok().flatten().is_some_and(|set| matches!(set.trim(), "1" | "0x1"));
    if is_smart {
        return finding
            .because("Smart App Control of Windows blocks programs that it does not know")
            .seen(format!("{SMART} is 1"))
            .remedy(
                "install the current WSL, which Microsoft has signed; if Windows blocks it too, turn Smart App Control off \
                 (Windows \
                 Security, App & browser control, Smart App Control), which older builds of Windows 11 turn on again only after a \
                 reset of the PC",
            )
            .command("winget install Microsoft.WSL")
            .command("start windowsdefender://appbrowser");
    }
    finding
        .because("App Control for Business (WDAC, Device Guard), which an administrator or a hardening program has set up, blocks WSL")
        .remedy(
            "let the administrator of this PC allow C:\\Windows\\System32\\wsl.exe and C:\\Program Files\\WSL, which Microsoft has \
             signed, and the launcher of the distribution; after a hardening program, undo its policy; until then, train on a Linux \
             machine",
        )
}

/// The settings of `.wslconfig` that a policy disables.
pub(super) fn disabled_setting(host: &Host, config: &WslConfig) -> Option<Finding> {
    let (key, policy) = SETTINGS.iter().find(|(key, policy)| {
        config.value(key).is_some_and(|value| !value.trim().is_empty()) && forbids(host, policy)
    })?;
    let title = format!("WSL ignores `{key}=` in .wslconfig: a policy of this PC disables that setting");
    Some(
        Finding::new("wsl.config-ignored", title)
            .because("a group policy, or the management of the company (Intune), keeps users from setting it")
            .seen(format!(r"{KEY}\{policy} is 0"))
            .remedy(format!(
                "remove `{key}=` from .wslconfig, or ask the administrator of this PC to allow it"
            )),
    )
}
