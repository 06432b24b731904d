//! The proposed values of `.wslconfig`, for PCs and training runs of several sizes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use yolo_checks::wsl::config::{ConfigFile, Document, size};
use yolo_checks::wsl::sizing::{Pc, Proposals, Training, propose};

const GIB: u64 = 1 << 30;

fn pc(gigabytes: u64) -> Pc {
    Pc {
        memory: gigabytes * GIB,
        processors: 16,
        windows_build: Some(22631),
        swap_disk_free: Some(200 * GIB),
    }
}

fn file(text: &str) -> Document {
    Document::parse(ConfigFile::WslConfig, text.as_bytes())
}

fn two_ranks() -> Training {
    Training { ranks: 2, ..Training::default() }
}

fn value(proposals: &Proposals, key: &str) -> String {
    proposals.values.iter().find(|one| one.key == key).unwrap().value.clone()
}

fn lines(proposals: &Proposals) -> Vec<String> {
    let values = proposals.values.iter().map(|one| {
        let now = one.now.as_deref().map_or(String::new(), |now| format!(" (now {now})"));
        format!("{}={}{now}: {}", one.key, one.value, one.why)
    });
    values.chain(proposals.warnings.iter().cloned()).collect()
}

#[test]
fn half_of_a_pc_is_enough_for_one_rank() {
    let proposals = propose(&pc(32), &Training::default(), &file(""));
    assert_eq!(
        lines(&proposals),
        [
            "memory=16GB: half of this PC's 32.0 GiB, as by default; one rank at 640 pixels needs about 7.0 GiB",
            "swap=4GB: a quarter of WSL's memory, as by default",
            "processors=16: all CPUs of this PC, as by default; Windows shares them",
        ]
    );
}

#[test]
fn two_ranks_take_more_than_half_of_a_small_pc() {
    let proposals = propose(&pc(16), &two_ranks(), &file(""));
    assert_eq!(
        lines(&proposals)[0],
        "memory=12GB: 2 ranks at 640 pixels need about 12.0 GiB, more than the default of half of this PC's 16.0 GiB; \
         this leaves 4.0 GiB for Windows"
    );
    assert_eq!(value(&proposals, "swap"), "3GB");
}

#[test]
fn a_pc_that_is_too_small_gives_a_warning() {
    let proposals = propose(&pc(8), &two_ranks(), &file(""));
    assert_eq!(
        lines(&proposals),
        [
            "memory=4GB: 2 ranks at 640 pixels need about 12.0 GiB; this leaves 4.0 GiB for Windows",
            "swap=8GB: the memory is about 8.0 GiB too small, and the rest goes to the disk",
            "processors=16: all CPUs of this PC, as by default; Windows shares them",
            "2 ranks at 640 pixels need about 12.0 GiB, but WSL can have only 4.0 GiB of this PC's 8.0 GiB: use fewer ranks or \
             workers, or smaller images",
        ]
    );
}

#[test]
fn a_sufficient_value_is_kept_as_written() {
    let text = "[wsl2]\nmemory=20G\nswap=0\nprocessors=12\n";
    let proposals = propose(&pc(32), &Training::default(), &file(text));
    assert!(proposals.values.iter().all(|one| !one.changes()), "{proposals:?}");
}

#[test]
fn unsuitable_values_are_replaced() {
    for (text, key, expected) in [
        // 8 bytes, which WSL raises to 256 MB.
        ("[wsl2]\nmemory=8\n", "memory", "16GB"),
        ("[wsl2]\nmemory=4GB\n", "memory", "16GB"),
        ("[wsl2]\nmemory=31GB\n", "memory", "16GB"),
        ("[wsl2]\nmemory=16 GB\n", "memory", "16GB"),
        ("[experimental]\nmemory=16GB\n", "memory", "16GB"),
        ("[wsl2]\nprocessors=2\n", "processors", "16"),
        ("[wsl2]\nprocessors=64\n", "processors", "16"),
        ("[wsl2]\nprocessors=all\n", "processors", "16"),
        ("[wsl2]\nswap=500GB\n", "swap", "4GB"),
        ("[wsl2]\nswap=8\n", "swap", "4GB"),
    ] {
        let proposals = propose(&pc(32), &Training::default(), &file(text));
        let one = proposals.values.iter().find(|one| one.key == key).unwrap();
        assert_eq!((one.value.as_str(), one.changes()), (expected, true), "{text}: {}", one.why);
    }
}

#[test]
fn several_machines_need_mirrored_networking() {
    let training = Training { machines: 2, ..Training::default() };
    assert_eq!(value(&propose(&pc(32), &training, &file("")), "networkingMode"), "mirrored");
    let kept = propose(&pc(32), &training, &file("[experimental]\nnetworkingMode=Mirrored\n"));
    assert_eq!(value(&kept, "networkingMode"), "Mirrored");
    let old = propose(&Pc { windows_build: Some(19045), ..pc(32) }, &training, &file(""));
    assert!(old.values.iter().all(|one| one.key != "networkingMode"));
    assert!(old.warnings[0].contains("build 19045"), "{:?}", old.warnings);
    // One machine does not need it.
    assert!(
        propose(&pc(32), &Training::default(), &file(""))
            .values
            .iter()
            .all(|one| one.key != "networkingMode")
    );
}

proptest! {
    #[test]
    fn nothing_is_larger_than_the_pc(
        megabytes in 512_u64..600_000, processors in 1_u32..256, free in proptest::option::of(0_u64..2_000_000),
        ranks in 1_u32..16, image_size in 32_u32..2048, workers in 0_u32..64, batch: u32, cached in 0_u64..500,
        memory in "[0-9]{1,4}(GB|MB|)", swap in "[0-9]{1,4}(GB|MB|)", now in 0_u32..300,
    ) {
        let pc = Pc {
            memory: megabytes << 20, processors, windows_build: None, swap_disk_free: free.map(|free| free << 20),
        };
        let training =
            Training { ranks, machines: 1, image_size, workers, batch, cached_images: cached * GIB };
        let mut file = file(&format!("[wsl2]\nmemory={memory}\nswap={swap}\nprocessors={now}\n"));
        let proposals = propose(&pc, &training, &file);
        let bytes = size::parse(&value(&proposals, "memory")).unwrap();
        prop_assert!(bytes <= pc.memory, "{proposals:?}");
        // Never so little that WSL would raise it, unless the PC has no more.
        prop_assert!(bytes >= size::LEAST_MEMORY.min(pc.memory / 2), "{proposals:?}");
        prop_assert!(value(&proposals, "processors").parse::<u32>().unwrap() <= processors);
        let swap = size::parse(&value(&proposals, "swap")).unwrap();
        if let Some(free) = pc.swap_disk_free {
            prop_assert!(swap < free.max(1), "{proposals:?}");
        }
        // Once written, they are enough.
        for one in &proposals.values {
            file.set("wsl2", one.key, &one.value).unwrap();
        }
        let again = propose(&pc, &training, &file);
        prop_assert!(again.values.iter().all(|one| !one.changes()), "{proposals:?}\n{again:?}");
    }
}
