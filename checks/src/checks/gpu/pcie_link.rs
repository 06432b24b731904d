//! Whether each GPU's PCIe link runs at full width and speed without errors. An idle GPU lowers its
//! speed to save power, so the speed only counts under load. Windows and WSL have no other source than
//! the driver, which in WSL may report the best link as the current one: there, only fewer lanes count.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::{Gpu, Host, NvmlState, pci_address};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Do the GPUs' PCIe links work at full width and without errors?",
    reports: &["gpu.link-narrow", "gpu.link-errors"],
    preflight: false,
    run,
};

const DEVICES: &str = "/sys/bus/pci/devices";
/// Performance states of a busy card, in which its link runs at full speed.
const BUSY: [&str; 4] = ["Zero", "One", "Two", "Three"];
/// A healthy link repeats a packet now and then.
const MANY: u64 = 50;

/// A card in its slot, as the driver reports it, or else the kernel.
struct Slot {
    who: String,
    /// As the kernel writes it, `0000:01:00.0`.
    address: Option<String>,
    gpu: Option<Gpu>,
}

fn run(host: &Host, intent: &Intent) -> Answer {
    if !super::is_native_linux(host) {
        return through_windows(host, intent);
    }
    let slots: Vec<Slot> = match super::of_run(host, intent) {
        Ok(gpus) => gpus.into_iter().map(of_driver).collect(),
        Err(why) => {
            let cards = super::pci::cards(host);
            if cards.is_empty() {
                // The kernel log may mention a device that NVIDIA's driver runs.
                let logged = logged(host, intent);
                return if logged.is_empty() { Err(why) } else { Ok(logged) };
            }
            cards.into_iter().map(of_kernel).collect()
        }
    };
    let mut findings: Vec<Finding> = slots.iter().filter_map(|slot| narrow(host, slot)).collect();
    let errors: Vec<Finding> = slots.iter().filter_map(|slot| repeats(host, slot)).collect();
    if errors.is_empty() && !intent.cpu {
        findings.extend(logged(host, intent));
    }
    findings.extend(errors);
    Ok(super::merge::merge_alike(findings))
}

/// The lanes that the Windows driver reports.
fn through_windows(host: &Host, intent: &Intent) -> Answer {
    if host.nvml_state()? != NvmlState::Ready {
        return Ok(Vec::new());
    }
    let slots = super::of_run(host, intent)?.into_iter().map(of_driver);
    let slots = slots.filter(|slot| !is_of_laptop(host, slot));
    Ok(super::merge::merge_alike(slots.filter_map(|slot| few_lanes(host, &slot)).collect()))
}

fn of_driver(gpu: Gpu) -> Slot {
    let address = gpu.pci_bus_id().ok().and_then(|address| pci_address(&address));
    Slot { who: super::label(&gpu), address: address.map(|address| format!("{address}.0")), gpu: Some(gpu) }
}

fn of_kernel(address: String) -> Slot {
    Slot { who: format!("the NVIDIA card at {address}"), address: Some(address), gpu: None }
}

impl Slot {
    fn number(&self, call: &str) -> Option<u64> {
        self.gpu.as_ref()?.number(call).ok()
    }

    fn text(&self, host: &Host, file: &str) -> Option<String> {
        host.text(&format!("{DEVICES}/{}/{file}", self.address.as_ref()?)).ok()?
    }

    /// Lanes in use and possible lanes.
    fn width(&self, host: &Host) -> Option<(u64, u64)> {
        if let (Some(width), Some(most)) = (self.number("pcie_width"), self.number("pcie_width_max")) {
            return Some((width, most));
        }
        let lanes = |file: &str| self.text(host, file)?.trim().parse().ok();
        Some((lanes("current_link_width")?, lanes("max_link_width")?))
    }

    /// Whether the card is busy, so that its link runs at full speed.
    fn is_busy(&self) -> bool {
        let state = self.gpu.as_ref().and_then(|gpu| gpu.text("performance_state").ok());
        state.is_some_and(|state| BUSY.contains(&state.as_str()))
    }
}

/// A laptop GPU is wired with the lanes it has, and reduces their number to save power.
fn is_of_laptop(host: &Host, slot: &Slot) -> bool {
    super::is_of_laptop(host, slot.gpu.as_ref())
}

fn narrow(host: &Host, slot: &Slot) -> Option<Finding> {
    let who = &slot.who;
    if is_of_laptop(host, slot) {
        return None;
    }
    if let Some(finding) = few_lanes(host, slot) {
        return Some(finding);
    }
    let (generation, best) = (slot.number("pcie_generation")?, slot.number("pcie_generation_max")?);
    if slot.is_busy() && generation + 1 < best {
        let title = format!("{who} runs its PCIe link at generation {generation} of {best} under load");
        return Some(Finding::new("gpu.link-narrow", title));
    }
    None
}

fn few_lanes(host: &Host, slot: &Slot) -> Option<Finding> {
    // Half the lanes cost little, and many boards share them; a quarter slows down the transfer of
    // images and gradients.
    let (width, most) = slot.width(host).filter(|(width, most)| *width > 0 && *width <= *most / 4)?;
    let who = &slot.who;
    if slot.is_busy() {
        return Some(Finding::new("gpu.link-narrow", format!("{who} uses {width} of its {most} PCIe lanes")));
    }
    let title = format!("{who}, which is idle, uses {width} of its {most} PCIe lanes");
    Some(
        Finding::new("gpu.link-narrow", title)
            .status(Status::Info)
            .because("recent cards turn off lanes to save power while they are idle")
            .remedy(
                "nothing, unless the number stays the same while the card is busy; then try a slot with more lanes: the \
                 others of the board, M.2 disks, and a CPU with graphics may share or lack them",
            )
            .command("nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv"),
    )
}

/// Packets that were sent again, as counted by the driver or the kernel.
fn repeats(host: &Host, slot: &Slot) -> Option<Finding> {
    let text = slot.text(host, "aer_dev_correctable").unwrap_or_default();
    let of_kernel = text.lines().find_map(|line| line.strip_prefix("TOTAL_ERR_COR")?.trim().parse().ok());
    let errors = slot.number("pcie_replays").unwrap_or(0).max(of_kernel.unwrap_or(0));
    let title = format!("the PCIe link of {} had {errors} corrected errors", slot.who);
    (errors >= MANY).then(|| Finding::new("gpu.link-errors", title))
}

/// A card as the kernel log may name it: by its own address, or by a port on the way to it.
struct Place {
    who: String,
    address: Option<String>,
    way: Option<String>,
}

/// What the log says about a device's errors.
struct Logged {
    /// The device that sent the errors, `0000:01:00.0`, which is often not the port that reports them.
    source: String,
    lines: Vec<String>,
}

/// Kernel log errors from a card or a port on the way to one. Those of other devices, such as a network
/// card, are ignored.
fn logged(host: &Host, intent: &Intent) -> Vec<Finding> {
    let places = places(host, intent);
    let is_known = places.iter().all(|place| place.address.is_some());
    // A driver that does not respond may have lost its card because of such errors.
    let is_sick = matches!(host.nvml_state(), Ok(NvmlState::Failed(_)))
        || host.gpus().is_ok_and(|gpus| gpus.iter().any(|gpu| gpu.lost().is_some()));
    let is_lost_from_sight = is_sick && places.iter().all(|place| place.way.is_none());
    let finding = |logged: Logged| {
        let card = pci_address(&logged.source);
        let own = |place: &&Place| place.address.is_some() && place.address == card;
        let leads = |place: &&Place| place.way.as_ref().is_some_and(|way| way.contains(&logged.source));
        let lines = format::count(logged.lines.len(), "line");
        let title = if let Some(place) = places.iter().find(own) {
            format!("the PCIe link of {} had errors: {lines} in the kernel log", place.who)
        } else if let Some(place) = places.iter().find(leads) {
            let (port, who) = (&logged.source, &place.who);
            format!("the PCIe port {port}, which leads to {who}, had errors: {lines} in the kernel log")
        } else if !is_known && logged.is_of_nvidia() {
            format!("the NVIDIA card at {} had PCIe errors: {lines} in the kernel log", logged.source)
        } else if is_lost_from_sight && logged.is_of_port() {
            let port = &logged.source;
            format!(
                "the PCIe port {port}, possibly the lost card's, had errors: {lines} in the kernel \
                 log"
            )
        } else {
            return None;
        };
        Some(logged.lines.into_iter().take(3).fold(Finding::new("gpu.link-errors", title), Finding::seen))
    };
    errors_by_source(host).into_iter().filter_map(finding).collect()
}

/// The run's cards, including lost ones; if none is known, one entry without an address for all.
fn places(host: &Host, intent: &Intent) -> Vec<Place> {
    let of_driver = |gpu: Gpu| (super::label(&gpu), gpu.pci_bus_id().ok());
    let of_kernel = |card: String| (format!("the NVIDIA card at {card}"), Some(card));
    let mut found: Vec<(String, Option<String>)> = match host.gpus() {
        Ok(gpus) => super::chosen(host, intent, gpus).into_iter().map(of_driver).collect(),
        Err(_) => super::pci::cards(host).into_iter().map(of_kernel).collect(),
    };
    if found.is_empty() && host.gpus().is_err() {
        found.push(("the NVIDIA card".to_owned(), None));
    }
    let place = |(who, address): (String, Option<String>)| {
        let address = address.as_deref().and_then(pci_address);
        let way = address.as_ref().and_then(|address| host.link(&format!("{DEVICES}/{address}.0")).ok()?);
        Place { who, address, way }
    };
    found.into_iter().map(place).collect()
}

impl Logged {
    /// By the name of NVIDIA's driver or by its vendor id, 10de.
    fn is_of_nvidia(&self) -> bool {
        self.lines.iter().any(|line| line.contains("nvidia ") || line.contains("[10de:"))
    }

    /// An error at the port's own end of a link: no device behind it is named.
    fn is_of_port(&self) -> bool {
        self.lines.iter().all(|line| line.contains("pcieport "))
    }
}

/// The PCIe error lines in the kernel log, by the device that sent them: a port logs `AER: Corrected
/// error received: 0000:01:00.0`, and then the device itself is named.
fn errors_by_source(host: &Host) -> Vec<Logged> {
    let mut found: Vec<Logged> = Vec::new();
    for line in host.kernel_lines(&["AER: ", "PCIe Bus Error"]) {
        // With its function, `0000:02:00.0:`, so that a time of day does not match.
        let is_address = |word: &&str| {
            let function = word.rsplit_once('.').map(|(_, function)| function.len());
            word.matches(':').count() >= 2 && function == Some(1) && pci_address(word).is_some()
        };
        let mut words = line.split_whitespace().map(|word| word.trim_end_matches([':', ',']));
        let Some(source) = words.rfind(is_address).filter(|_| line.contains("rror")) else {
            continue;
        };
        let source = source.to_ascii_lowercase();
        match found.iter_mut().find(|logged| logged.source == source) {
            Some(logged) => logged.lines.push(line),
            None => found.push(Logged { source, lines: vec![line] }),
        }
    }
    found
}
