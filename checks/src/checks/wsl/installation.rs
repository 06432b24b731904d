//! Whether this PC can run WSL 2 and has a distribution: virtualization, Windows features, the
//! kernel and the list of distributions. The messages of `wsl.exe` are translated, so its error
//! codes and table layout are parsed instead.

use super::start::{self, Said};
use super::{nested, policy, services, virtualization};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;
use crate::wsl::exe_output::{self, Distribution, Trouble};
use crate::wsl::old_windows::OldWindows;

pub(super) static CHECK: Check = Check {
    question: "Can this PC run WSL 2?",
    reports: &[
        "wsl.virtualization-off",
        "wsl.feature-off",
        "wsl.damaged",
        "wsl.service-disabled",
        "wsl.kernel-missing",
        "wsl.no-distribution",
        "wsl.default-is-helper",
        "wsl.new-distributions-one",
        "wsl.windows-old",
        "wsl.disk-missing",
        "wsl.disk-broken",
        "wsl.disk-unusable",
        "wsl.access-denied",
        "wsl.start-timeout",
        "wsl.no-answer",
        "wsl.network-broken",
        "wsl.gpu-not-configured",
        "wsl.vm-crashed",
        "wsl.no-memory-to-start",
        "wsl.custom-kernel-missing",
        "wsl.download-blocked",
        "wsl.other-account",
    ],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    // Inside WSL it evidently runs; but a recording from there may describe the PC.
    let inside = host.wsl()?.is_some();
    if host.is_container() || !(host.is_windows()? || inside && host.is_recorded()) {
        return Ok(Vec::new());
    }
    if let (false, Some(old)) = (inside, host.old_windows()) {
        return Ok(vec![windows_old(old)]);
    }
    if let (false, Some(finding)) = (inside, policy::without_wsl(host)) {
        return Ok(vec![finding]);
    }
    let (status, list) = (host.wsl_status(), host.wsl_list());
    let mut said = start::recorded(host);
    if inside && let Some(finding) = start::failed_since(host, &said) {
        return Ok(vec![finding]);
    }
    if inside && status.is_err() && list.is_err() {
        return Ok(Vec::new());
    }
    if let (Ok(None), Ok(None) | Err(_)) | (Err(_), Ok(None)) = (&status, &list) {
        if inside {
            return Ok(Vec::new());
        }
        return Ok(vec![without_program()]);
    }
    // One of the two is enough.
    if let (Err(why), Err(_)) = (&status, &list) {
        let answers: Vec<&str> = said.iter().filter_map(Said::of_start).collect();
        let of_start = || {
            let of_pc = || start::trouble(&said).and_then(|text| trouble(host, text));
            services::disabled(host, &answers).or_else(|| start::failed(host, &said)).or_else(of_pc)
        };
        if let Some(finding) = start::silent(host).or_else(|| app_control(host, &why.0)).or_else(of_start) {
            return Ok(vec![finding]);
        }
        return Err(why.clone());
    }
    let (status, list) = (status.ok().flatten().unwrap_or_default(), list.ok().flatten().unwrap_or_default());
    said.extend(
        [("wsl.exe --status", &status), ("wsl.exe -l -v", &list)].map(|(line, text)| Said::new(line, text)),
    );
    let answers: Vec<&str> = [status.as_str(), &list]
        .into_iter()
        .chain(said.iter().filter(|_| !inside).filter_map(Said::of_start))
        .collect();
    if let Some(finding) = services::disabled(host, &answers) {
        return Ok(vec![finding]);
    }
    let distributions = exe_output::distributions(&list);
    let has_distribution = distributions.iter().any(Distribution::is_usable);
    let mut findings = if inside { Vec::new() } else { start::setup_failed(host, &said, has_distribution) };
    let web = start::needs_web_download(host, &said);
    let fit = |finding: Finding| {
        from_web(start::failed_install(host, start::with_store(host, in_machine(host, finding))), web)
    };
    match start::failed(host, &said).filter(|_| !inside) {
        // WSL starts, in another way than it is set to.
        Some(finding) if finding.status == Status::Info => findings.push(finding),
        Some(finding) => return Ok([finding].into_iter().chain(findings).collect()),
        None => {}
    }
    let of_start = || start::trouble(&said).filter(|_| !inside).and_then(|text| trouble(host, text));
    if let Some(finding) = trouble(host, &status).or_else(|| trouble(host, &list)).or_else(of_start) {
        return Ok([fit(finding)].into_iter().chain(findings).collect());
    }
    let unknown = |text: &str| {
        exe_output::code(text)
            .filter(|_| distributions.is_empty() && exe_output::trouble(text).is_none())
            .map(unknown_failure)
    };
    if findings.is_empty()
        && let Some(finding) = unknown(&list).or_else(|| unknown(&status))
    {
        return Ok(vec![finding]);
    }
    if distributions.is_empty()
        && let Some(line) = start::no_program(host, &status, &list)
    {
        return Ok(vec![start::without_program(host, line)]);
    }
    let status = exe_output::status(&status);
    if let Some(finding) =
        of_distributions(&distributions, status.default_distribution.as_deref(), !list.trim().is_empty())
    {
        findings.push(fit(finding));
    }
    findings.extend(start::failed_of_helper(host).filter(|_| !inside));
    if status.default_version == Some(1) {
        let title = "new Linux distributions are created as WSL 1, which has no GPU support";
        findings.push(
            Finding::new("wsl.new-distributions-one", title).command("wsl.exe --set-default-version 2"),
        );
    }
    Ok(findings)
}

/// Why no distribution starts, from what the program that should start one has printed.
pub(in crate::checks) fn failure(host: &Host, command: &str, text: &str) -> Option<Finding> {
    let said = [Said::new(command, text)];
    let of_start = || start::failed(host, &said).filter(|finding| finding.status == Status::Error);
    let web = start::needs_web_download(host, &said);
    let of_pc = || trouble(host, text).map(|finding| from_web(in_machine(host, finding), web));
    services::disabled(host, &[text]).or_else(of_start).or_else(of_pc)
}

/// The finding, with commands that go past the store where downloads from it are blocked.
fn from_web(mut finding: Finding, web: bool) -> Finding {
    for command in finding.remedy.iter_mut().filter(|_| web).flat_map(|remedy| &mut remedy.commands) {
        *command = match command.as_str() {
            "wsl.exe --install -d Ubuntu" => "wsl.exe --install --web-download -d Ubuntu".to_owned(),
            "wsl.exe --update" => "wsl.exe --update --web-download".to_owned(),
            other => other.to_owned(),
        };
    }
    finding
}

/// The finding, with another remedy where Windows itself runs in a virtual machine.
fn in_machine(host: &Host, finding: Finding) -> Finding {
    match host.guest().filter(|_| finding.id == "wsl.virtualization-off" && !host.is_bare_metal()) {
        Some(guest) => nested::fit(finding, guest),
        None => finding,
    }
}

/// Whatever is installed or set, WSL 2 does not run on it.
fn windows_old(old: OldWindows) -> Finding {
    let title = format!("this {} is too old for today's WSL 2", old.name());
    Finding::new("wsl.windows-old", title).remedy(old.remedy())
}

/// Not even the stub that is part of Windows, which could install WSL. The commands are those of Microsoft's manual
/// installation: <https://learn.microsoft.com/windows/wsl/install-manual>
fn without_program() -> Finding {
    let enable =
        |feature: &str| format!("dism.exe /online /enable-feature /featurename:{feature} /all /norestart");
    Finding::new("wsl.feature-off", "wsl.exe does not exist: WSL is not installed on this PC")
        .because("Windows does not include WSL; it must be installed")
        .remedy(
            "enable Windows' features for WSL in a Windows terminal as administrator, then restart Windows",
        )
        .command(enable("Microsoft-Windows-Subsystem-Linux"))
        .command(enable("VirtualMachinePlatform"))
        .command("shutdown /r /t 0")
}

fn not_installed(title: &str) -> Finding {
    Finding::new("wsl.feature-off", title)
        .because("Windows does not include WSL; it must be installed")
        .remedy("install it in a Windows terminal as administrator, then restart Windows")
        .command("wsl.exe --install")
        .command("shutdown /r /t 0")
}

fn trouble(host: &Host, answer: &str) -> Option<Finding> {
    let trouble = exe_output::trouble(answer)?;
    if trouble == Trouble::VirtualizationOff
        && let Some(finding) = virtualization::known(host, answer)
    {
        return Some(finding);
    }
    let (id, commands): (_, &[&str]) = match trouble {
        // This message of WSL has one code for both causes, of which the feature is repaired faster.
        Trouble::VirtualizationOff if !answer.contains("0x80370102") => {
            return Some(virtualization::off(answer));
        }
        Trouble::VirtualizationOff => (
            "wsl.virtualization-off",
            &[
                "bcdedit /set hypervisorlaunchtype Auto",
                "wsl.exe --install --no-distribution",
                "shutdown /r /t 0",
            ],
        ),
        // `wsl --install` starts the same installer, which fails in the same way.
        Trouble::Damaged => ("wsl.damaged", &[]),
        Trouble::FeatureOff => {
            ("wsl.feature-off", &["wsl.exe --install --no-distribution", "shutdown /r /t 0"])
        }
        Trouble::NotInstalled => return Some(not_installed("WSL is not installed on this PC")),
        Trouble::KernelMissing => ("wsl.kernel-missing", &["wsl.exe --update"]),
        Trouble::NoDistribution => ("wsl.no-distribution", &["wsl.exe --install -d Ubuntu"]),
        Trouble::Forbidden if exe_output::is_app_control(answer) => return app_control(host, answer),
        Trouble::Forbidden => {
            return Some(policy::blocked(&format!("WSL 2 cannot run: {trouble}")));
        }
        Trouble::NeedsRestart => ("wsl.feature-off", &["shutdown /r /t 0"]),
        // Problems with a download, permissions or a disk are not this check's questions.
        Trouble::NeedsRights | Trouble::Network | Trouble::DiskFull | Trouble::DiskBroken => return None,
        // Reported before, with the name of the service.
        Trouble::ServiceDisabled => return None,
    };
    let finding = Finding::new(id, format!("WSL 2 cannot run: {trouble}"));
    let finding = match exe_output::code(answer) {
        Some(code) => finding.seen(format!("wsl.exe reports {code}")),
        None => finding,
    };
    Some(commands.iter().fold(finding, |finding, command| finding.command(*command)))
}

/// App Control for Business, Device Guard or Smart App Control does not let wsl.exe start.
fn app_control(host: &Host, answer: &str) -> Option<Finding> {
    exe_output::is_app_control(answer).then(|| policy::app_control(host))
}

/// An error that nothing else here explains: it does not mean that there is no distribution.
fn unknown_failure(code: &str) -> Finding {
    Finding::new("wsl.damaged", format!("WSL does not start: wsl.exe reports {code}"))
        .because("a service of WSL is missing, does not start, or does not answer")
        .remedy(
            "restart Windows; if WSL says the same again, run the installer (.msi) from \
             https://github.com/microsoft/WSL/releases as administrator, which repairs WSL and keeps distributions",
        )
        .command("shutdown /r /t 0")
}

fn of_distributions(all: &[Distribution], default: Option<&str>, answered: bool) -> Option<Finding> {
    let usable: Vec<&Distribution> = all.iter().filter(|one| one.is_usable()).collect();
    let Some(first) = usable.first() else {
        let title = match all.first() {
            Some(one) => format!("the only Linux distribution is {}, which is not meant for users", one.name),
            None if answered && default.is_none() => "no Linux distribution is installed".to_owned(),
            None => return helper(default?, None),
        };
        return Some(Finding::new("wsl.no-distribution", title).command("wsl.exe --install -d Ubuntu"));
    };
    let default = all.iter().find(|one| one.default).map(|one| one.name.as_str()).or(default)?;
    helper(default, Some(first))
}

/// The default distribution, if it is one of Docker's.
fn helper(default: &str, better: Option<&Distribution>) -> Option<Finding> {
    let one = Distribution { name: default.to_owned(), default: true, state: String::new(), version: 2 };
    if one.is_usable() {
        return None;
    }
    let title = format!("`wsl` starts {default}, which has no usable shell");
    let name = better.map_or("<your distribution>", |better| better.name.as_str());
    Some(Finding::new("wsl.default-is-helper", title).command(format!("wsl.exe --set-default {name}")))
}
