//! Walks every finding through every kind of host: each recorded Linux machine is moved to another
//! distribution, into a container, a pod, a batch job or a notebook service, and the commands of its
//! findings are collected. Recorded machines that are in such a place already, in WSL or on Windows stay where
//! they are. The rules here say which commands may appear where; the snapshot shows each command once, with the
//! places that it is for. Every command that deletes, ends, restarts or upgrades something is
//! reviewed in `reviewed.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod reviewed;
#[path = "../support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::OnceLock;
use std::thread;

use reviewed::{HARMFUL, REVIEWED};
use serde_json::{Value, json};
use support::{Case, cases, is_produced, merge};
use yolo_checks::facts::{Job, Place, Rental};
use yolo_checks::{Host, Intent, Status, run_all_checks};

/// Distributions, by the content of /etc/os-release.
const DISTRIBUTIONS: [(&str, &str); 16] = [
    ("ubuntu", "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n"),
    ("mint", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"22.1\"\n"),
    ("pop", "ID=pop\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"24.04\"\n"),
    ("debian", "ID=debian\nVERSION_ID=\"12\"\n"),
    ("fedora", "ID=fedora\nVERSION_ID=42\n"),
    ("nobara", "ID=nobara\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=42\n"),
    ("rocky", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.5\"\n"),
    ("amazon", "ID=\"amzn\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"2023\"\n"),
    ("leap", "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\nVERSION_ID=\"15.6\"\n"),
    ("sles", "ID=sles\nID_LIKE=suse\nVERSION_ID=\"15.7\"\n"),
    ("tumbleweed", "ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n"),
    ("arch", "ID=arch\n"),
    ("manjaro", "ID=manjaro\nID_LIKE=arch\n"),
    ("nixos", "ID=nixos\nVERSION_ID=\"25.05\"\n"),
    ("alpine", "ID=alpine\nVERSION_ID=3.21\n"),
    ("void", "ID=\"void\"\n"),
];
/// Machines whose user is not their administrator. All of them have Ubuntu's files.
const GUESTS: [&str; 16] = [
    "docker",
    "podman",
    "lxc",
    "proxmox",
    "pod",
    "apptainer",
    "colab",
    "kaggle",
    "runpod",
    "slurm",
    "pbs",
    "lsf",
    "grid-engine",
    "condor",
    "flux",
    "oar",
];
/// Those of them that are jobs of a batch system.
const JOBS: [&str; 7] = ["slurm", "pbs", "lsf", "grid-engine", "condor", "flux", "oar"];
/// A host whose sentence below ends in this is somebody else's machine.
const ELSEWHERE: [&str; 2] = ["# on the host", "# on the node"];

/// What makes a machine one of [`GUESTS`].
fn guest(name: &str) -> Value {
    match name {
        "docker" => json!({ "files": { "/.dockerenv": "" } }),
        "podman" => json!({ "files": { "/run/.containerenv": "engine=\"podman-5.2.2\"\nrootless=1\n" } }),
        "lxc" => json!({ "env": { "container": "lxc" } }),
        "proxmox" => json!({
            "env": { "container": "lxc" },
            "files": { "/proc/sys/kernel/osrelease": "6.14.11-4-pve\n" },
        }),
        "pod" => json!({ "env": { "KUBERNETES_SERVICE_HOST": "10.96.0.1" } }),
        "apptainer" => json!({ "env": { "APPTAINER_CONTAINER": "/images/torch.sif" } }),
        "colab" => {
            json!({ "files": { "/.dockerenv": "" }, "env": { "COLAB_RELEASE_TAG": "release-colab_20260101" } })
        }
        "kaggle" => {
            json!({ "files": { "/.dockerenv": "" }, "env": { "KAGGLE_KERNEL_RUN_TYPE": "Interactive" } })
        }
        "runpod" => json!({ "files": { "/.dockerenv": "" }, "env": { "RUNPOD_POD_ID": "abc" } }),
        "slurm" => json!({ "env": { "SLURM_JOB_ID": "4711" } }),
        "pbs" => json!({ "env": { "PBS_JOBID": "4711.head" } }),
        "lsf" => json!({ "env": { "LSB_JOBID": "4711" } }),
        "grid-engine" => json!({ "env": { "JOB_ID": "4711", "SGE_ROOT": "/opt/sge" } }),
        "condor" => json!({ "env": { "_CONDOR_SCRATCH_DIR": "/var/lib/condor/execute/dir_4711" } }),
        "flux" => json!({ "env": { "FLUX_JOB_ID": "f4711" } }),
        "oar" => json!({ "env": { "OAR_JOB_ID": "4711" } }),
        _ => panic!("no such guest: {name}"),
    }
}

/// Every place, with what it changes in a recording.
fn places() -> Vec<(&'static str, Value)> {
    let file = |text: &str| json!({ "files": { "/etc/os-release": text } });
    let machines = DISTRIBUTIONS.iter().map(|(name, text)| (*name, file(text)));
    let guests = GUESTS.iter().map(|name| {
        let mut patch = file(DISTRIBUTIONS[0].1);
        merge(&mut patch, &guest(name));
        (*name, patch)
    });
    // Its packages are layered into an image.
    let silverblue = json!({
        "files": { "/etc/os-release": "ID=fedora\nVERSION_ID=42\nVARIANT_ID=silverblue\n" },
        "stats": { "/run/ostree-booted": { "kind": "file" } },
    });
    // Its packages come with an image that is built elsewhere.
    let rhel_image = json!({
        "files": { "/etc/os-release": "ID=\"rhel\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"9.6\"\n" },
        "stats": { "/run/ostree-booted": { "kind": "file" }, "/usr/bin/bootc": { "kind": "file" } },
    });
    let images = [("silverblue", silverblue), ("rhel-image", rhel_image)];
    machines.chain(images).chain(guests).collect()
}

/// What a user is told to type, or to do: by finding and command or text, the places.
type Words = BTreeMap<(String, String), BTreeSet<&'static str>>;

/// A text together with the commands below it, and where they are said: by finding, text and commands.
type Whole = BTreeMap<(String, String, Vec<String>), BTreeSet<&'static str>>;

/// The remedies of all findings in all places.
#[derive(Default)]
struct Remedies {
    commands: Words,
    texts: Words,
    whole: Whole,
}

/// The commands of all findings in all places, collected once for all tests.
fn all() -> &'static Remedies {
    static ALL: OnceLock<Remedies> = OnceLock::new();
    ALL.get_or_init(collect)
}

fn collect() -> Remedies {
    let places = places();
    let (placed, machines): (Vec<Case>, Vec<Case>) =
        cases().into_iter().partition(|case| case.recording["os"] != "linux" || is_placed(&case.recording));
    let machines: Vec<(Value, Intent)> =
        machines.into_iter().map(|case| (case.recording, case.intent)).collect();
    let parts = thread::available_parallelism().map_or(1, |count| count.get());
    let size = machines.len().div_ceil(parts);
    thread::scope(|scope| {
        let works: Vec<_> = machines
            .chunks(size)
            .map(|machines| {
                let places = &places;
                scope.spawn(move || {
                    let mut remedies = Remedies::default();
                    for (recording, intent) in machines {
                        for (place, patch) in places {
                            let mut recording = recording.clone();
                            merge(&mut recording, patch);
                            add(&mut remedies, place, recording, intent);
                        }
                    }
                    remedies
                })
            })
            .collect();
        let mut all = Remedies::default();
        for case in placed {
            if let Some(place) = place_of(&case.host()) {
                add(&mut all, place, case.recording, &case.intent);
            }
        }
        for part in works.into_iter().map(|work| work.join().unwrap()) {
            for (key, places) in part.commands {
                all.commands.entry(key).or_default().extend(places);
            }
            for (key, places) in part.texts {
                all.texts.entry(key).or_default().extend(places);
            }
            for (key, places) in part.whole {
                all.whole.entry(key).or_default().extend(places);
            }
        }
        all
    })
}

/// Whether a recording is in WSL or in one of the places already.
fn is_placed(recording: &Value) -> bool {
    let host = Host::from_value(recording.clone()).unwrap().0;
    let in_wsl = !matches!(host.wsl(), Ok(None));
    in_wsl || host.is_container() || host.job().is_some()
}

/// Where a recorded machine is; `None` for one that is in two places at once, such as a job in a container.
fn place_of(host: &Host) -> Option<&'static str> {
    if let Some(job) = host.job() {
        return (!host.is_container() && is_like_guests(host)).then(|| name_of(job));
    }
    // Services that rent containers have remedies of their own, of which one is listed.
    if let Some(rental) = host.rental() {
        return (rental == Rental::Runpod && is_like_guests(host)).then_some("runpod");
    }
    Some(match host.place() {
        Place::Wsl => "wsl",
        Place::Windows => "windows",
        Place::DockerInWsl => "docker-in-wsl",
        Place::Docker => "docker",
        Place::Podman => "podman",
        Place::Lxc => "lxc",
        Place::Pod => "pod",
        Place::Apptainer => "apptainer",
        Place::Enroot => "enroot",
        Place::Colab => "colab",
        Place::Kaggle => "kaggle",
        Place::Mac => "macos",
        Place::Machine => return None,
    })
}

/// Whether a recorded machine has the packages that all of [`GUESTS`] have.
fn is_like_guests(host: &Host) -> bool {
    host.distribution().is_ok_and(|distribution| distribution.id == "ubuntu")
}

/// The place of a job.
fn name_of(job: Job) -> &'static str {
    match job {
        Job::Slurm => "slurm",
        Job::Pbs => "pbs",
        Job::Lsf => "lsf",
        Job::GridEngine => "grid-engine",
        Job::Condor => "condor",
        Job::Flux => "flux",
        Job::Oar => "oar",
    }
}

fn add(remedies: &mut Remedies, place: &'static str, recording: Value, intent: &Intent) {
    let host = Host::from_value(recording).unwrap().0;
    let shown = run_all_checks(&host, intent).into_iter();
    for finding in shown.filter(|finding| is_produced(finding) && finding.status > Status::Ok) {
        if let Some(remedy) = &finding.remedy {
            let text = (finding.id.to_owned(), remedy.text.clone());
            remedies.texts.entry(text).or_default().insert(place);
            let whole = (finding.id.to_owned(), remedy.text.clone(), remedy.commands.clone());
            remedies.whole.entry(whole).or_default().insert(place);
            for command in &remedy.commands {
                remedies.commands.entry((finding.id.to_owned(), command.clone())).or_default().insert(place);
            }
        }
    }
}

/// Programs that exist on some distributions only.
const PROGRAMS: [(&[&str], &[&str]); 11] = [
    (&["apt ", "dpkg ", "update-initramfs"], &["ubuntu", "mint", "pop", "debian"]),
    (&["ubuntu-drivers"], &["ubuntu", "mint"]),
    (&["system76-"], &["pop"]),
    (&["dnf ", "akmods --"], &["fedora", "nobara", "rocky", "amazon"]),
    (&["bootc "], &["rhel-image"]),
    (
        &["rpm "],
        &["fedora", "silverblue", "rhel-image", "nobara", "rocky", "amazon", "leap", "sles", "tumbleweed"],
    ),
    (&["zypper "], &["leap", "sles", "tumbleweed"]),
    (&["pacman ", "mkinitcpio"], &["arch", "manjaro"]),
    (&["mhwd "], &["manjaro"]),
    (&["nixos-rebuild"], &["nixos"]),
    (&["xbps-install"], &["void"]),
];

#[test]
fn commands_fit_the_place_that_they_are_for() {
    let mut wrong = Vec::new();
    for ((id, command), places) in &all().commands {
        for place in places {
            if let Some(why) = misfit(command, place) {
                wrong.push(format!("{place}: {id}: {command}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} commands do not fit:\n{}", wrong.len(), wrong.join("\n"));
}

/// Why a command must not be advised in a place.
fn misfit(command: &str, place: &str) -> Option<&'static str> {
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
        let fits = distributions.contains(&place) || is_guest && distributions.contains(&"ubuntu");
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
    if has("pacman -Sy ") || has("pacman -S ") {
        return Some("a partial upgrade");
    }
    // A limit of a service of systemd is raised by systemd.
    if ["alpine", "void"].contains(&place) && has("systemctl") && !has(".service") {
        return Some("there is no systemd");
    }
    None
}

#[test]
fn texts_fit_the_place_that_they_are_for() {
    let mut wrong = Vec::new();
    for ((id, text), places) in &all().texts {
        for place in places {
            if let Some(why) = misfit_of_text(id, text, place) {
                wrong.push(format!("{place}: {id}: {text}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} texts do not fit:\n{}", wrong.len(), wrong.join("\n"));
}

/// Why a sentence must not be said in a place.
fn misfit_of_text(id: &str, text: &str, place: &str) -> Option<&'static str> {
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

#[test]
fn what_is_passed_on_has_no_command_of_the_users_own() {
    let mut wrong = Vec::new();
    for ((id, text, commands), places) in &all().whole {
        if let Some(why) = misfit_of_remedy(text, commands) {
            wrong.push(format!("{places:?}: {id}: {text}: {commands:?}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{} remedies do not fit:\n{}", wrong.len(), wrong.join("\n"));
}

/// Why a sentence and its commands must not be said together.
fn misfit_of_remedy(text: &str, commands: &[String]) -> Option<&'static str> {
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

/// What a module is built from is there before the image that it is built with.
#[test]
fn an_image_is_built_after_what_it_needs() {
    let builds = ["rpm-ostree upgrade", "rpm-ostree install akmod-nvidia"];
    let needs = ["tee /etc/rpm/", "kmodgenca"];
    for ((id, _, commands), _) in all().whole.iter().filter(|(_, places)| places.contains("silverblue")) {
        let place = |words: &[&str]| {
            commands.iter().position(|command| words.iter().any(|word| command.contains(word)))
        };
        if let (Some(build), Some(need)) = (place(&builds), place(&needs)) {
            assert!(need < build, "{id}: {commands:?}");
        }
    }
}

#[test]
fn the_documentation_counts_the_places() {
    let design = include_str!("../../../docs/design.md").replace('\n', " ");
    let counted = format!(
        "{} distributions, Silverblue, an image of RHEL and {} such places",
        DISTRIBUTIONS.len(),
        GUESTS.len()
    );
    assert!(design.contains(&counted), "docs/design.md does not say: {counted}");
}

#[test]
fn each_command_and_its_places() {
    insta_of("every_place", "Each command of each finding, and the places that it is for", &all().commands);
}

/// The texts where somebody else administers the machine: no list of words can judge them, so they are to be read.
#[test]
fn each_text_for_guests_and_its_places() {
    let mut texts = Words::new();
    for (key, places) in &all().texts {
        let guests: BTreeSet<&'static str> =
            places.iter().copied().filter(|place| GUESTS.contains(place)).collect();
        // What is said on the user's own machine too is no different there.
        if !guests.is_empty() && !places.contains("ubuntu") {
            texts.insert(key.clone(), guests);
        }
    }
    insta_of("texts_for_guests", "Each text that only guests of a machine are given, and which", &texts);
}

fn insta_of(name: &str, description: &str, words: &Words) {
    let mut text = String::new();
    let mut last = String::new();
    let every = places().len();
    for ((id, word), places) in words {
        if *id != last {
            writeln!(text, "{id}").unwrap();
            last.clone_from(id);
        }
        let places = match places.len() {
            count if count == every => "everywhere".to_owned(),
            _ => places.iter().copied().collect::<Vec<_>>().join(" "),
        };
        writeln!(text, "    {word}\n        {places}").unwrap();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_description(description);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Whether a command is the reviewed one, of which a path may be left out: `find … -name …`.
fn is_of(command: &str, reviewed: &str) -> bool {
    match reviewed.split_once('…') {
        Some((start, rest)) => command.strip_prefix(start).is_some_and(|command| command.contains(rest)),
        None => command.starts_with(reviewed),
    }
}

/// `find` runs any other program, so that its name alone says nothing about a command.
#[test]
fn each_command_of_find_is_reviewed_by_itself() {
    for (reviewed, _) in REVIEWED.iter().filter(|(reviewed, _)| reviewed.trim_start().starts_with("find")) {
        assert!(reviewed.contains(" -exec") && reviewed.contains("-name '"), "{reviewed}");
    }
}

#[test]
fn every_command_that_can_do_harm_is_reviewed() {
    let is_harmful = |command: &str| {
        // Words in comments and in names of settings do nothing.
        let command = command.split("  # ").next().unwrap_or_default().to_ascii_lowercase();
        // `find` and `sh` have the program behind a quote.
        HARMFUL.iter().map(|word| word.to_ascii_lowercase()).any(|word| {
            command.starts_with(&word)
                || [" ", "'"].iter().any(|before| command.contains(&format!("{before}{word}")))
        })
    };
    let mut used = BTreeSet::new();
    let mut wrong = Vec::new();
    for (id, command) in all().commands.keys().filter(|(_, command)| is_harmful(command)) {
        match REVIEWED.iter().find(|(reviewed, _)| is_of(command, reviewed)) {
            Some((start, _)) => drop(used.insert(*start)),
            None => wrong.push(format!("{id}: {command}")),
        }
    }
    assert!(wrong.is_empty(), "not reviewed:\n{}", wrong.join("\n"));
    let unused: Vec<&str> =
        REVIEWED.iter().map(|(start, _)| *start).filter(|start| !used.contains(start)).collect();
    assert!(unused.is_empty(), "no finding has these commands: {unused:?}");
}
