//! Chooses the libtorch variant for a machine: a pure function of its driver, GPUs and system, using
//! the tables of [`crate::libtorch_builds`]. The choice includes its reasons, and the GPUs that the
//! variant does not support.

use crate::libtorch_builds::{BUILDS, Build, Capability, Serves, best_for, least_driver};

/// The input of the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The operating system as Rust names it, such as `linux`.
    pub family: String,
    /// The CPU architecture, such as `x86_64`.
    pub architecture: String,
    /// The driver's version, such as `580.95.05`, or why it is unknown. In WSL it is that of the
    /// Windows driver, whose branch (the first number) has the same meaning.
    pub driver: Result<String, String>,
    /// The GPUs.
    pub cards: Vec<Card>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// The nvidia-smi number.
    pub index: usize,
    /// Such as `NVIDIA H200`.
    pub name: String,
    /// The compute capability, if the driver reports it.
    pub capability: Option<Capability>,
}

/// A variant and the reasons for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// `cpu`, `cu126`, `cu128` or `cu130`.
    pub variant: &'static str,
    /// Why it was chosen, one sentence each.
    pub reasons: Vec<String>,
    /// The GPUs that this variant does not support, one sentence each.
    pub unserved: Vec<String>,
}

/// Chooses the newest variant that the driver supports and that has kernels for every GPU; otherwise
/// the one with kernels for most of them; without a usable GPU, `cpu`.
pub fn choose(machine: &Machine) -> Choice {
    let cpu = |reasons: Vec<String>, unserved| Choice { variant: "cpu", reasons, unserved };
    if (machine.family.as_str(), machine.architecture.as_str()) != ("linux", "x86_64") {
        let reason = format!("there is no CUDA variant for {} on {}", machine.family, machine.architecture);
        return cpu(vec![reason], Vec::new());
    }
    let driver = match &machine.driver {
        Ok(driver) => driver,
        Err(why) => return cpu(vec![why.clone()], Vec::new()),
    };
    if machine.cards.is_empty() {
        return cpu(vec![format!("the NVIDIA driver {driver} reports no GPU")], Vec::new());
    }
    let Some(branch) = driver.split('.').next().and_then(|branch| branch.trim().parse().ok()) else {
        return cpu(vec![format!("the driver's version {driver:?} is not a version")], Vec::new());
    };
    let known: Vec<(&Card, Capability)> =
        machine.cards.iter().filter_map(|card| Some((card, card.capability?))).collect();
    let unknown = machine.cards.iter().filter(|card| card.capability.is_none()).map(|card| {
        format!("{} does not report its compute capability, so no variant is chosen for it", shown(card))
    });
    let mut unserved: Vec<String> = unknown.collect();
    if known.is_empty() {
        return cpu(vec!["no GPU reports its compute capability".to_owned()], unserved);
    }
    let capabilities: Vec<Capability> = known.iter().map(|(_, capability)| *capability).collect();
    let together = best_for(&capabilities, branch);
    let Some(build) = together.or_else(|| serving_most(&capabilities, branch)) else {
        let oldest = least_driver(12);
        let reason = if branch < oldest {
            format!("the driver {driver} is too old for every CUDA variant: {oldest} or newer is needed")
        } else {
            format!("no variant that runs on driver {driver} has kernels for these GPUs")
        };
        unserved.extend(known.iter().map(|(card, capability)| alone(card, *capability, branch)));
        return cpu(vec![reason], unserved);
    };
    let mut reasons = vec![runs(build, driver)];
    for (card, capability) in &known {
        match build.serves(*capability) {
            Serves::Compiled => reasons.push(format!(
                "{} has compute capability {}, for which {} has kernels",
                shown(card),
                dotted(*capability),
                build.name
            )),
            Serves::Ptx => reasons.push(format!(
                "{} has compute capability {}, newer than all kernels of {}: they are compiled for it on \
                 first use, which takes several minutes once",
                shown(card),
                dotted(*capability),
                build.name
            )),
            Serves::No => unserved.push(alone(card, *capability, branch)),
        }
    }
    let newer = BUILDS.iter().rev().take_while(|newer| newer.name != build.name);
    reasons.extend(newer.map(|newer| why_not(newer, &known, branch)));
    Choice { variant: build.name, reasons, unserved }
}

/// The newest of the builds that support the most GPUs.
fn serving_most(cards: &[Capability], branch: u32) -> Option<&'static Build> {
    let served = |build: &Build| cards.iter().filter(|card| build.serves(**card) != Serves::No).count();
    let usable = BUILDS.iter().filter(|build| build.runs_on(branch) && served(build) > 0);
    usable.max_by_key(|build| served(build))
}

fn runs(build: &Build, driver: &str) -> String {
    let (major, minor) = build.cuda;
    format!("the driver {driver} supports CUDA {major}.{minor} ({} or newer is needed)", build.least_driver())
}

fn why_not(build: &Build, cards: &[(&Card, Capability)], branch: u32) -> String {
    if !build.runs_on(branch) {
        return format!("{} needs driver {} or newer", build.name, build.least_driver());
    }
    match cards.iter().find(|(_, capability)| build.serves(*capability) == Serves::No) {
        Some((card, _)) => format!("{} has no kernels for {}", build.name, shown(card)),
        None => format!("{} would have to compile its kernels on first use", build.name),
    }
}

/// What would support a GPU that the chosen variant does not.
fn alone(card: &Card, capability: Capability, branch: u32) -> String {
    let intro = format!("{} (compute capability {}) is not supported", shown(card), dotted(capability));
    match best_for(&[capability], branch) {
        Some(build) => format!("{intro}: it needs {}, which the other GPUs cannot use", build.name),
        None => match best_for(&[capability], u32::MAX) {
            Some(build) => {
                format!("{intro}: it needs {} and driver {} or newer", build.name, build.least_driver())
            }
            None => format!("{intro}: no variant of libtorch 2.11 has kernels for it"),
        },
    }
}

fn shown(card: &Card) -> String {
    format!("GPU {} ({})", card.index, card.name)
}

fn dotted((major, minor): Capability) -> String {
    format!("{major}.{minor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(driver: &str, capabilities: &[Capability]) -> Machine {
        let cards = capabilities.iter().enumerate().map(|(index, &capability)| Card {
            index,
            name: format!("card {index}"),
            capability: Some(capability),
        });
        Machine {
            family: "linux".into(),
            architecture: "x86_64".into(),
            driver: Ok(driver.into()),
            cards: cards.collect(),
        }
    }

    fn variant(driver: &str, capabilities: &[Capability]) -> &'static str {
        choose(&machine(driver, capabilities)).variant
    }

    #[test]
    fn driver_and_card_decide() {
        assert_eq!(variant("580.95.05", &[(9, 0)]), "cu130");
        assert_eq!(variant("570.26", &[(8, 9)]), "cu128");
        assert_eq!(variant("581.80", &[(6, 1)]), "cu126");
        assert_eq!(variant("580.95.05", &[(7, 0)]), "cu126");
        assert_eq!(variant("470.82.01", &[(8, 6)]), "cpu");
        assert_eq!(variant("580.95.05", &[(3, 7)]), "cpu");
    }

    #[test]
    fn reasons_name_the_driver_the_card_and_what_was_passed_over() {
        let reasons = choose(&machine("580.95.05", &[(7, 0)])).reasons.join("\n");
        assert!(reasons.contains("580.95.05") && reasons.contains("cu126 has kernels"), "{reasons}");
        assert!(reasons.contains("cu128 has no kernels for GPU 0 (card 0)"), "{reasons}");
        assert!(reasons.contains("cu130 has no kernels for GPU 0 (card 0)"), "{reasons}");
        let reasons = choose(&machine("550.54.14", &[(8, 6)])).reasons.join("\n");
        assert!(reasons.contains("cu130 needs driver 580 or newer"), "{reasons}");
    }

    #[test]
    fn without_a_common_variant_most_cards_win_and_the_rest_is_named() {
        let choice = choose(&machine("580.95.05", &[(6, 1), (12, 0), (12, 0)]));
        assert_eq!(choice.variant, "cu130");
        assert_eq!(choice.unserved.len(), 1);
        assert!(
            choice.unserved[0].contains("GPU 0") && choice.unserved[0].contains("cu126"),
            "{:?}",
            choice.unserved
        );
    }

    #[test]
    fn a_new_card_with_an_old_driver_gets_the_required_driver() {
        let choice = choose(&machine("550.54.14", &[(12, 1), (3, 5)]));
        let unserved = choice.unserved.join("\n");
        assert!(unserved.contains("no variant of libtorch 2.11 has kernels for it"), "{unserved}");
    }

    #[test]
    fn without_driver_gpu_or_system_it_is_cpu_with_the_reason() {
        let mut none = machine("580.95.05", &[]);
        assert!(choose(&none).reasons[0].contains("reports no GPU"));
        none.driver = Err("there is no NVIDIA driver".into());
        assert_eq!(choose(&none).reasons, ["there is no NVIDIA driver"]);
        let mut mac = machine("580.95.05", &[(9, 0)]);
        mac.family = "macos".into();
        assert_eq!(choose(&mac).variant, "cpu");
        let mut silent = machine("580.95.05", &[(9, 0)]);
        silent.cards[0].capability = None;
        let choice = choose(&silent);
        assert_eq!((choice.variant, choice.unserved.len()), ("cpu", 1));
    }
}
