//! From what was seen to conclusions: what is wrong, what is slow, and what a run can expect. A pure function, so
//! that hosts nobody here has are tested on recorded observations.

mod administrator;
mod conclusion;
mod devices;
mod disk;
mod expectation;
mod links;
mod strain;

pub(super) use conclusion::{Conclusion, Verdict};
pub(super) use expectation::Expectation;

use super::observed::Observed;

/// Draws the conclusions.
pub(super) fn judge(seen: &Observed) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.warnings.extend(seen.warnings.iter().map(Conclusion::new));
    links::judge(seen, &mut verdict);
    devices::judge(seen, &mut verdict);
    strain::judge(seen, &mut verdict);
    verdict.expectation = expectation::of(seen);
    if let Some(slow) = verdict.expectation.as_ref().and_then(|expected| disk::slow(seen, expected)) {
        verdict.warnings.push(slow);
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::deep::render;

    /// `tests/deep/README.md` says where they come from.
    #[test]
    fn recorded_observations_lead_to_these_conclusions() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/deep");
        let mut files: Vec<_> =
            std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        assert!(files.len() >= 11, "{files:?}");
        for file in files {
            let seen: Observed = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            insta::assert_snapshot!(name, render::text(&seen, &judge(&seen)));
        }
    }

    fn recorded(name: &str) -> Verdict {
        let file = format!("{}/tests/deep/{name}.json", env!("CARGO_MANIFEST_DIR"));
        judge(&serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap())
    }

    #[test]
    fn only_what_fails_or_is_wrong_is_an_error() {
        let errors = |name: &str| recorded(name).errors.len();
        let wrong =
            ["silent-corruption", "p2p-hangs", "one-card-fails-with-every-other", "driver-wants-a-reset"];
        assert!(wrong.iter().all(|name| errors(name) > 0));
        let slow =
            ["one-slow-card", "one-bad-link", "hot-card", "wsl-refuses-pinned-memory", "decoder-bound"];
        assert!(slow.iter().all(|name| errors(name) == 0));
        let healthy = recorded("eight-healthy-h100");
        assert!(healthy.errors.is_empty() && healthy.warnings.is_empty(), "{healthy:?}");
    }

    #[test]
    fn what_limits_a_run_is_only_said_if_it_is_certain() {
        let bottleneck = |name: &str| recorded(name).expectation.unwrap().bottleneck.map(|part| part.name());
        assert_eq!(bottleneck("slow-network-file-system"), Some("disk"));
        // The card reaches a fraction of its bound, which may be less than what the decoder allows.
        assert_eq!(bottleneck("wsl-refuses-pinned-memory"), None);
        // The link is not known.
        assert_eq!(bottleneck("p2p-hangs"), None);
    }

    #[test]
    fn what_an_administrator_does_fits_the_host() {
        use super::super::observed::Administrator;
        let hints = |name: &str, administrator: Administrator| -> String {
            let file = format!("{}/tests/deep/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let mut seen: Observed = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            seen.host.administrator = administrator;
            for rank in &mut seen.ranks {
                rank.address = Some("00000000:C1:00.0".to_owned());
            }
            let verdict = judge(&seen);
            let all = verdict.errors.into_iter().chain(verdict.warnings);
            all.filter_map(|one| one.hint).collect::<Vec<_>>().join("\n")
        };
        let reset = |administrator| hints("driver-wants-a-reset", administrator);
        assert!(reset(Administrator::User).contains("`sudo nvidia-smi --gpu-reset -i 3`"));
        let in_docker = reset(Administrator::Host);
        let on_host = "on the host of this container: `sudo nvidia-smi --gpu-reset -i 00000000:C1:00.0`";
        assert!(in_docker.contains(on_host), "{in_docker}");
        let in_job = reset(Administrator::Job("Slurm".to_owned()));
        assert!(
            in_job.contains("the administrator of this Slurm node") && !in_job.contains("nvidia-smi"),
            "{in_job}"
        );
        assert!(reset(Administrator::Windows).contains("restart Windows"));
        let in_pod = reset(Administrator::Node);
        assert!(in_pod.contains("delete the pod") && !in_pod.contains("sudo"), "{in_pod}");
        let limit = |administrator| hints("one-slow-card", administrator);
        assert!(limit(Administrator::User).contains("-pl 700`"), "{}", limit(Administrator::User));
        for administrator in [
            Administrator::Windows,
            Administrator::Job("PBS".to_owned()),
            Administrator::Machine,
            Administrator::Node,
            Administrator::Service("Colab".to_owned()),
        ] {
            for name in ["one-slow-card", "hot-card", "driver-wants-a-reset"] {
                let hints = hints(name, administrator.clone());
                assert!(!hints.contains("sudo") && !hints.contains("-i N"), "{administrator:?}: {hints}");
            }
        }
    }

    #[test]
    fn a_cache_takes_the_disk_and_the_decoder_out_of_later_epochs() {
        let file = format!("{}/tests/deep/slow-network-file-system.json", env!("CARGO_MANIFEST_DIR"));
        let mut seen: Observed = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        seen.planned.as_mut().unwrap().cached = true;
        let expected = judge(&seen).expectation.unwrap();
        // The device or the links: both bounds are loose.
        assert_eq!(expected.bottleneck.map(|part| part.name()), None);
        assert_eq!(expected.bounds.iter().filter(|bound| bound.first_epoch_only).count(), 2);
    }
}
