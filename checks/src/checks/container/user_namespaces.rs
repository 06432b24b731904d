//! Whether programs that start containers without root may do so: Apptainer, Enroot and a rootless Docker need user
//! namespaces, which Ubuntu from 23.10 on allows only to programs that AppArmor has a profile for, and other systems switch off as
//! a whole. This is only information, because training outside containers does not need it.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "May Apptainer, Enroot and Docker without root make containers?",
    reports: &["container.userns-restricted"],
    preflight: false,
    run,
};

/// What Ubuntu's kernel asks of a program: 1 is a profile.
const OF_APPARMOR: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
/// Where others switch them off: with 0.
const SWITCHES: [(&str, &str, &str); 2] = [
    ("/proc/sys/user/max_user_namespaces", "user.max_user_namespaces", "15000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone", "1"),
];
const PROFILES: &str = "/etc/apparmor.d";
/// What these programs say.
const MESSAGES: [&str; 6] = [
    "Could not write info to setgroups",
    "user namespace mappings: no event received",
    "ailed to create user namespace",
    "requires privileges, check Apptainer installation",
    "[rootlesskit:parent] error: failed to",
    "operation=\"userns_create\"",
];

/// A program that makes user namespaces without root.
struct Program {
    /// As messages name it.
    name: &'static str,
    /// The paths of which one shows that it is installed.
    paths: Vec<String>,
    /// A part of the name of its profile.
    profile: &'static str,
    /// The program that makes the namespaces, as a profile names it.
    makes: String,
}

fn run(host: &Host, _: &Intent) -> Answer {
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    if host.os()? != "linux" || host.place() != Place::Machine || is_root {
        return Ok(Vec::new());
    }
    let found = programs(host).iter().find_map(|program| finding(host, program));
    Ok(found.into_iter().map(|found| message(host).into_iter().fold(found, Finding::seen)).collect())
}

fn finding(host: &Host, program: &Program) -> Option<Finding> {
    if has_starter(host, program) {
        return None;
    }
    let text = |file: &str| host.text(file).ok().flatten().map(|text| text.trim().to_owned());
    if let Some((_, name, value)) = SWITCHES.iter().find(|(file, ..)| text(file).as_deref() == Some("0")) {
        return Some(switched_off(program, name, value));
    }
    let is_asked = text(OF_APPARMOR).as_deref() == Some("1");
    (is_asked && is_without_profile(host, program) == Some(true))
        .then(|| without_profile(program).seen("kernel.apparmor_restrict_unprivileged_userns = 1"))
}

/// The programs that are installed. Podman and Ubuntu's own rootless Docker bring a profile.
fn programs(host: &Host) -> Vec<Program> {
    let home = host.env("HOME").ok().flatten().unwrap_or_default();
    let in_folders = |names: &[&str]| -> Vec<String> {
        let folders = [
            "/usr/bin".to_owned(),
            "/usr/local/bin".to_owned(),
            format!("{home}/.local/bin"),
            format!("{home}/bin"),
        ];
        folders.iter().flat_map(|folder| names.iter().map(move |name| format!("{folder}/{name}"))).collect()
    };
    let starter = |program: &str| {
        let folder = FOLDERS.iter().map(|folder| format!("{folder}/{program}/bin"));
        let is_there = |folder: &String| host.exists(&format!("{folder}/starter")) == Ok(true);
        folder.into_iter().find(is_there).unwrap_or(format!("/usr/libexec/{program}/bin"))
    };
    let own_kit = format!("{home}/bin/rootlesskit");
    let all = [
        Program {
            name: "Apptainer",
            paths: in_folders(&["apptainer"]),
            profile: "apptainer",
            makes: format!("{}/starter{{,-suid}}", starter("apptainer")),
        },
        Program {
            name: "Singularity",
            paths: in_folders(&["singularity"]),
            profile: "singularity",
            makes: format!("{}/starter{{,-suid}}", starter("singularity")),
        },
        Program {
            name: "Enroot",
            paths: in_folders(&["enroot"]),
            profile: "enroot",
            makes: "/usr/bin/enroot-*".to_owned(),
        },
        Program {
            name: "Docker without root",
            paths: vec![own_kit.clone()],
            profile: "bin.rootlesskit",
            makes: own_kit,
        },
    ];
    let is_there = |program: &Program| program.paths.iter().any(|path| host.exists(path) == Ok(true));
    let mut found: Vec<Program> = all.into_iter().filter(is_there).collect();
    // Apptainer brings a link of this name.
    if found.first().is_some_and(|program| program.name == "Apptainer") {
        found.retain(|program| program.name != "Singularity");
    }
    found
}

/// Where packages and builds have the parts of Apptainer and Singularity.
const FOLDERS: [&str; 6] = [
    "/usr/libexec",
    "/usr/local/libexec",
    "/usr/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/opt/apptainer/libexec",
    "/opt/libexec",
];

/// Whether a program has another way: a starter that root owns (setuid) makes containers without user namespaces.
fn has_starter(host: &Host, program: &Program) -> bool {
    let path = |folder: &&str| format!("{folder}/{}/bin/starter-suid", program.profile);
    FOLDERS.iter().any(|folder| host.exists(&path(folder)) == Ok(true))
}

/// Whether AppArmor has no profile for it; `None` if that is unknown and no message tells.
fn is_without_profile(host: &Host, program: &Program) -> Option<bool> {
    match host.folder(PROFILES) {
        Ok(names) => Some(!names.unwrap_or_default().iter().any(|name| name.contains(program.profile))),
        Err(_) => message(host).map(|_| true),
    }
}

/// What a recorded command, or the kernel, said.
fn message(host: &Host) -> Option<String> {
    let names = [
        "apptainer",
        "singularity",
        "enroot",
        "dockerd-rootless.sh",
        "dockerd-rootless-setuptool.sh",
        "srun",
        "dmesg",
        "journalctl",
    ];
    let outputs = names.iter().flat_map(|name| host.recorded_outputs(name));
    outputs.map(|(_, output)| output.all_text()).find_map(|text| {
        let line = text.lines().find(|line| MESSAGES.iter().any(|words| line.contains(words)));
        line.map(|line| line.trim().to_owned())
    })
}

fn without_profile(program: &Program) -> Finding {
    let name = program.name;
    let title =
        format!("{name} cannot make containers: AppArmor has no profile that allows it user namespaces");
    let finding = Finding::new("container.userns-restricted", title);
    let how = match program.name {
        "Apptainer" => {
            "give it a profile: install Apptainer's own package (.deb of its releases or ppa:apptainer/ppa, 1.3.4 or later), which brings one, or \
             apptainer-suid, which needs none; or write one for a build of your own"
        }
        "Singularity" => {
            "give it a profile: install SingularityCE's own package for this Ubuntu, which brings one, or write one"
        }
        _ => "write a profile for it",
    };
    let file = match program.name {
        "Docker without root" => program.makes.trim_start_matches('/').replace('/', "."),
        _ => program.profile.to_owned(),
    };
    let profile = format!(
        "abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile {file} {} flags=(unconfined) {{\\n  userns,\\n}}\\n",
        program.makes
    );
    finding
        .remedy("nothing if you train outside containers")
        .machine_remedy(format!("for containers, {how}"))
        .command(format!("printf '{profile}' | sudo tee {PROFILES}/{file}"))
        .command(format!("sudo apparmor_parser -r {PROFILES}/{file}"))
}

fn switched_off(program: &Program, setting: &str, value: &str) -> Finding {
    let title = format!("{} cannot make containers: user namespaces are off ({setting} is 0)", program.name);
    let setuid = match program.name {
        "Apptainer" => ", or install its setuid starter (package apptainer-suid), which needs none",
        _ => "",
    };
    Finding::new("container.userns-restricted", title)
        .remedy("nothing if you train outside containers")
        .machine_remedy(format!("for containers, allow user namespaces, now and at each start{setuid}"))
        .command(format!("echo {setting}={value} | sudo tee /etc/sysctl.d/90-user-namespaces.conf"))
        .command("sudo sysctl --system")
}
