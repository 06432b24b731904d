//! The CUDA builds of libtorch 2.11: the CUDA version of each, the oldest driver that runs it, and
//! the compute capabilities it has kernels for. No single build supports every GPU, so these tables
//! decide which one a machine needs.
//!
//! Sources: CUDA 13.2 release notes, table 2 (drivers); PyTorch's `.ci/manywheel/build_cuda.sh`,
//! pytorch#157517, and pytorch PRs 172598 and 175253, which removed Volta from the CUDA 12.8 build of
//! 2.11 (compute capabilities).

/// A compute capability, such as (8, 6).
pub type Capability = (u32, u32);

/// A build of libtorch.
#[derive(Debug, PartialEq, Eq)]
pub struct Build {
    /// The name of the variant, such as `cu126`.
    pub name: &'static str,
    /// Its CUDA version.
    pub cuda: (u32, u32),
    /// Capabilities with machine code.
    pub compiled: &'static [Capability],
    /// Whether the last capability is also included as PTX, which the driver compiles for newer GPUs.
    pub ptx: bool,
}

/// How a build supports a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// With machine code for its capability or an older minor version.
    Compiled,
    /// By compiling PTX on first use, which takes several minutes once.
    Ptx,
    /// Not at all: "no kernel image is available".
    No,
}

/// The builds, oldest CUDA first.
pub const BUILDS: [Build; 3] = [
    Build {
        name: "cu126",
        cuda: (12, 6),
        compiled: &[(5, 0), (6, 0), (7, 0), (7, 5), (8, 0), (8, 6), (9, 0)],
        ptx: false,
    },
    Build {
        name: "cu128",
        cuda: (12, 8),
        compiled: &[(7, 5), (8, 0), (8, 6), (9, 0), (10, 0), (12, 0)],
        ptx: false,
    },
    Build {
        name: "cu130",
        cuda: (13, 0),
        compiled: &[(7, 5), (8, 0), (8, 6), (9, 0), (10, 0), (12, 0)],
        ptx: true,
    },
];

impl Build {
    /// Whether and how it supports a GPU. Machine code for X.Y runs on X.Z if Z is at least Y; PTX
    /// runs on everything newer.
    pub fn serves(&self, card: Capability) -> Serves {
        if self.compiled.iter().any(|&(major, minor)| major == card.0 && minor <= card.1) {
            return Serves::Compiled;
        }
        match self.compiled.last() {
            Some(&newest) if self.ptx && card > newest => Serves::Ptx,
            _ => Serves::No,
        }
    }

    /// The oldest driver branch that runs it. Thanks to minor-version compatibility, any driver of the
    /// same CUDA generation does.
    pub fn least_driver(&self) -> u32 {
        least_driver(self.cuda.0)
    }

    /// Whether a driver of this branch runs it.
    pub fn runs_on(&self, driver_branch: u32) -> bool {
        driver_branch >= self.least_driver()
    }
}

/// The build for a CUDA version.
pub fn of_cuda(cuda: (u32, u32)) -> Option<&'static Build> {
    BUILDS.iter().find(|build| build.cuda == cuda)
}

/// The oldest driver branch for a CUDA generation, by minor-version compatibility.
pub fn least_driver(cuda_major: u32) -> u32 {
    match cuda_major {
        0..=10 => 418,
        11 => 450,
        12 => 525,
        _ => 580,
    }
}

/// The first CUDA version whose compiler makes machine code for a card; `None` for cards that every CUDA version since
/// 9.0 knows, and for those that nobody has seen. Source: the release notes of these versions.
pub fn first_cuda(card: Capability) -> Option<(u32, u32)> {
    match card {
        (7, 5) => Some((10, 0)),
        (8, _) => Some((11, 0)),
        (9, _) => Some((11, 8)),
        (10 | 12, _) => Some((12, 8)),
        (11, _) => Some((13, 0)),
        _ => None,
    }
}

/// The newest build that supports all these GPUs with this driver; machine code is preferred to PTX.
pub fn best_for(cards: &[Capability], driver_branch: u32) -> Option<&'static Build> {
    let fits = |build: &&Build, allowed: &[Serves]| {
        build.runs_on(driver_branch) && cards.iter().all(|&card| allowed.contains(&build.serves(card)))
    };
    let newest = |allowed: &[Serves]| BUILDS.iter().rev().find(|build| fits(build, allowed));
    newest(&[Serves::Compiled]).or_else(|| newest(&[Serves::Compiled, Serves::Ptx]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(cards: &[Capability], driver: u32) -> Option<&'static str> {
        best_for(cards, driver).map(|build| build.name)
    }

    #[test]
    fn the_newest_build_that_the_driver_runs_is_best() {
        assert_eq!(best(&[(8, 6)], 580), Some("cu130"));
        assert_eq!(best(&[(8, 6)], 550), Some("cu128"));
        assert_eq!(best(&[(8, 6)], 525), Some("cu128"));
        assert_eq!(best(&[(8, 6)], 470), None);
    }

    #[test]
    fn old_cards_need_old_builds_and_new_cards_new_ones() {
        assert_eq!(best(&[(6, 1)], 580), Some("cu126"));
        // The CUDA 12.8 build of libtorch 2.11 has no Volta kernels.
        assert_eq!(best(&[(7, 0)], 580), Some("cu126"));
        assert_eq!(best(&[(7, 0)], 550), Some("cu126"));
        assert_eq!(best(&[(7, 0), (9, 0)], 580), Some("cu126"));
        assert_eq!(best(&[(7, 5)], 550), Some("cu128"));
        assert_eq!(best(&[(12, 0)], 560), Some("cu128"));
        assert_eq!(best(&[(12, 1)], 580), Some("cu130"));
        assert_eq!(best(&[(3, 7)], 580), None);
    }

    #[test]
    fn some_pairs_of_cards_have_no_build_in_common() {
        assert_eq!(best(&[(6, 1), (12, 0)], 580), None);
        assert_eq!(best(&[(7, 0), (12, 0)], 580), None);
    }

    #[test]
    fn a_compiler_knows_the_cards_of_its_time() {
        assert_eq!(first_cuda((12, 1)), Some((12, 8)));
        assert_eq!(first_cuda((8, 9)), Some((11, 0)));
        assert_eq!(first_cuda((6, 1)), None);
        for build in &BUILDS {
            assert!(
                build.compiled.iter().all(|&card| first_cuda(card).is_none_or(|first| first <= build.cuda))
            );
        }
    }

    #[test]
    fn capabilities_newer_than_all_run_through_ptx() {
        assert_eq!(BUILDS[2].serves((13, 0)), Serves::Ptx);
        assert_eq!(BUILDS[1].serves((13, 0)), Serves::No);
        // 11.0 lies between compiled ones: there is no PTX below it.
        assert_eq!(BUILDS[2].serves((11, 0)), Serves::No);
        assert_eq!(best(&[(13, 0)], 580), Some("cu130"));
    }
}
