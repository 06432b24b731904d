//! `--batch` and `--batch-split`: the batch is the total over all ranks, and a multiple of their number
//! unless it is split into unequal shares.

use crate::auto_batch::AUTO;
use crate::device::{Device, Inventory};
use crate::error::PlanError;
use yolo_base::format::count;

/// A batch and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Images per step over all ranks.
    pub total: usize,
    /// Images per step of each rank; empty if the shares are equal.
    pub split: Vec<usize>,
    /// How it was split, if `--batch-split auto` did.
    pub note: Option<String>,
}

/// How many images become one with `--quad`.
pub const QUAD: usize = 4;

impl Batch {
    /// Checks that `--quad` can make one image of four in each of `parts` parts of the batch.
    ///
    /// # Errors
    /// When a part is not a multiple of four; the hint then names the nearest batch.
    pub fn check_quads(&self, parts: usize) -> Result<(), PlanError> {
        let share = self.total / parts.max(1);
        let shares = if self.split.is_empty() { vec![share; parts] } else { self.split.clone() };
        if shares.iter().all(|share| share.is_multiple_of(QUAD)) {
            return Ok(());
        }
        if !self.split.is_empty() {
            let list = |shares: &[usize]| shares.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            let nearest: Vec<usize> =
                shares.iter().map(|share| ((share + QUAD / 2) / QUAD * QUAD).max(QUAD)).collect();
            let message = format!(
                "--quad makes one image of {QUAD}, but the shares of the batch, {}, are not all multiples of {QUAD}",
                list(&shares)
            );
            return Err(PlanError::usage(message).with_hint(format!(
                "use --batch-split {} with --batch {}",
                list(&nearest),
                nearest.iter().sum::<usize>()
            )));
        }
        let unit = QUAD * parts;
        let below = self.total / unit * unit;
        let above = below + unit;
        let nearest = if below == 0 { format!("{above}") } else { format!("{below} or {above}") };
        let of_each =
            if parts > 1 { format!(" ({QUAD} for each of {parts} ranks or devices)") } else { String::new() };
        Err(PlanError::usage(format!(
            "--quad makes one image of {QUAD}, so --batch must be a multiple of {unit}{of_each}, but it is {}",
            self.total
        ))
        .with_hint(format!("use --batch {nearest}")))
    }
}

/// Divides a batch among `ranks` ranks, of which this plan has those on `devices`. `split` is `--batch-split`; `given` is whether the user
/// gave `--batch`, which explicit shares otherwise add up to.
///
/// # Errors
/// When the batch cannot be divided in this way.
pub fn divide(
    batch: i64,
    given: bool,
    split: Option<&str>,
    (ranks, devices): (usize, &[Device]),
    inventory: &Inventory,
) -> Result<Batch, PlanError> {
    match split.map(str::trim) {
        None => Ok(Batch { total: check(batch, ranks)?, split: Vec::new(), note: None }),
        Some(auto) if auto.eq_ignore_ascii_case("auto") && devices.len() < ranks => {
            Err(PlanError::usage(format!(
                "--batch-split auto cannot be used here: {} of {ranks} ranks are planned elsewhere, so the memory \
                 of their devices is not known",
                ranks - devices.len()
            ))
            .with_hint("give the images of each rank, for example --batch-split 16,8"))
        }
        Some(auto) if auto.eq_ignore_ascii_case("auto") => by_memory(check(batch, 1)?, devices, inventory),
        Some(list) => explicit(check(batch, 1)?, given, list, ranks),
    }
}

/// Checks the options before the number of ranks is known, as far as that is possible: `batch` is `--batch`, and
/// `split` is `--batch-split`. The ranks are on several machines.
///
/// # Errors
/// When no number of ranks would make them right.
pub fn check_before_ranks_are_known(batch: Option<i64>, split: Option<&str>) -> Result<(), PlanError> {
    batch.map_or(Ok(1), |batch| check(batch, 1))?;
    match split.map(str::trim) {
        Some(auto) if auto.eq_ignore_ascii_case("auto") => Err(PlanError::usage(
            "--batch-split auto is for ranks on one machine: the memory of the others is not known",
        )
        .with_hint("give the images of each rank, for example --batch-split 16,8")),
        Some(list) => shares(list).map(drop),
        None => Ok(()),
    }
}

/// Refuses what `--batch -1` cannot be combined with: `--batch-split`, and `--parallel model`.
///
/// # Errors
/// When one of them is given.
pub fn check_auto(is_split: bool, is_spread: bool) -> Result<(), PlanError> {
    if is_split {
        return Err(PlanError::usage(
            "--batch -1 and --batch-split are both given: the first gives all ranks equally many images",
        )
        .with_hint("omit one of them"));
    }
    if is_spread {
        return Err(PlanError::usage(
            "--batch -1 cannot be used with --parallel model: it measures the memory of one device, and the model is \
             spread over several",
        )
        .with_hint("give the number of images per step, for example --batch 16"));
    }
    Ok(())
}

/// Checks the form of `--batch-split`, before the ranks are known.
///
/// # Errors
/// When it is neither `auto` nor numbers of images.
pub fn check_split_form(split: &str) -> Result<(), PlanError> {
    let split = split.trim();
    if split.eq_ignore_ascii_case("auto") { Ok(()) } else { shares(split).map(drop) }
}

/// The shares of a list, whatever their sum.
fn shares(list: &str) -> Result<Vec<usize>, PlanError> {
    let number = |text: &str| {
        text.trim().parse::<usize>().ok().filter(|images| (1..=MAX_SHARE).contains(images)).ok_or_else(|| {
            PlanError::usage(format!(
                "--batch-split {list}: \"{}\" is not a number of images, which is at least 1",
                text.trim()
            ))
            .with_hint("use auto, or the images of each rank, for example --batch-split 16,8")
        })
    };
    list.split(',').map(number).collect()
}

/// Shares that the user has written down.
fn explicit(batch: usize, given: bool, list: &str, ranks: usize) -> Result<Batch, PlanError> {
    let shares = shares(list)?;
    if shares.len() != ranks {
        let message = format!(
            "--batch-split {list} has {}, but there {}",
            count(shares.len(), "share"),
            if ranks == 1 { "is one rank".to_owned() } else { format!("are {ranks} ranks") }
        );
        return Err(
            PlanError::usage(message).with_hint("give one number of images for each device of --device")
        );
    }
    let total: usize = shares.iter().sum();
    if given && total != batch {
        let message = format!("--batch-split {list} adds up to {total}, but --batch is {batch}");
        return Err(PlanError::usage(message).with_hint(format!("use --batch {total}, or omit it")));
    }
    Ok(Batch { total, split: unless_equal(shares), note: None })
}

/// Shares in proportion to the memory of the devices, of which ranks on one device have equal parts.
fn by_memory(batch: usize, devices: &[Device], inventory: &Inventory) -> Result<Batch, PlanError> {
    if batch < devices.len() {
        let message = format!("--batch {batch} is less than one image for each of {} ranks", devices.len());
        return Err(PlanError::usage(message).with_hint(format!("use --batch {}", devices.len())));
    }
    let mut parts = Vec::with_capacity(devices.len());
    for device in devices {
        let memory = match device {
            Device::Cpu => Some(1 << 30),
            _ => inventory.memory(*device),
        };
        let Some(memory) = memory else {
            let message = format!("--batch-split auto: the driver does not report the memory of {device}");
            return Err(PlanError::new(message).with_hint("give the images of each rank, for example 16,8"));
        };
        let ranks = devices.iter().filter(|other| *other == device).count();
        parts.push(memory / ranks as u64);
    }
    let split = unless_equal(in_proportion(batch, &parts));
    let note = (!split.is_empty()).then(|| {
        let share = |(device, images): (&Device, &usize)| format!("{} on {device}", count(*images, "image"));
        let shares: Vec<String> = devices.iter().zip(&split).map(share).collect();
        format!("the batch is split by memory: {}", shares.join(", "))
    });
    Ok(Batch { total: batch, split, note })
}

/// Equal shares are not written down.
fn unless_equal(shares: Vec<usize>) -> Vec<usize> {
    if shares.iter().all(|share| *share == shares[0]) { Vec::new() } else { shares }
}

/// Whole numbers with the sum `total` in proportion to `parts`, at least 1 each: each part is rounded
/// down, and what is left goes to those that lose most.
fn in_proportion(total: usize, parts: &[u64]) -> Vec<usize> {
    let sum: u128 = parts.iter().map(|part| u128::from(*part)).sum::<u128>().max(1);
    let exact = |part: &u64| total as u128 * u128::from(*part);
    let mut shares: Vec<usize> = parts.iter().map(|part| ((exact(part) / sum) as usize).max(1)).collect();
    let mut by_loss: Vec<usize> = (0..parts.len()).collect();
    by_loss.sort_by_key(|&rank| (std::cmp::Reverse(exact(&parts[rank]) % sum), rank));
    let mut next = by_loss.iter().cycle();
    while shares.iter().sum::<usize>() < total {
        if let Some(&rank) = next.next() {
            shares[rank] += 1;
        }
    }
    while shares.iter().sum::<usize>() > total {
        // The largest pays for those that were raised to 1.
        if let Some(largest) = shares.iter_mut().max() {
            *largest -= 1;
        }
    }
    shares
}

/// A larger share is a typo.
const MAX_SHARE: usize = 1 << 20;

/// Checks a total batch against the number of ranks.
///
/// # Errors
/// When it is not positive, or not a multiple; the hint then names the nearest multiples.
pub fn check(batch: i64, ranks: usize) -> Result<usize, PlanError> {
    check_among(batch, ranks, "ranks")
}

/// Checks a total batch against the number of replicas in one process, each on a device (`--parallel dp`).
///
/// # Errors
/// As [`check`].
pub fn check_replicas(batch: i64, devices: usize) -> Result<usize, PlanError> {
    check_among(batch, devices, "devices")
}

/// Why `--batch -1` is refused `where_`: who could measure the memory of devices there.
pub fn auto_only_on_one_machine(where_: &str) -> PlanError {
    PlanError::usage(format!(
        "--batch -1, the largest batch that fits, is for a run that `yolo train` starts on one machine, and has no \
         meaning {where_}"
    ))
    .with_hint("give the number of images per step, for example --batch 16")
}

fn check_among(batch: i64, parts: usize, what: &str) -> Result<usize, PlanError> {
    if batch == AUTO {
        return Err(auto_only_on_one_machine("here"));
    }
    let Some(total) = usize::try_from(batch).ok().filter(|total| *total > 0) else {
        return Err(PlanError::usage(format!(
            "--batch {batch} is not a number of images: it must be at least 1"
        ))
        .with_hint("give the number of images per step, for example --batch 16"));
    };
    let parts = parts.max(1);
    if total % parts == 0 {
        return Ok(total);
    }
    let below = total / parts * parts;
    let above = below.saturating_add(parts);
    let nearest = if below == 0 { format!("{above}") } else { format!("{below} or {above}") };
    Err(PlanError::usage(format!(
        "--batch {total} cannot be divided among {parts} {what}: it is the total over all {what} and must be a multiple of {parts}"
    ))
    .with_hint(format!("use --batch {nearest}")))
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::*;
    use crate::device::Gpu;

    const GPUS: [Device; 2] = [Device::Cuda(0), Device::Cuda(1)];

    /// Two GPUs with this much memory in GiB.
    fn inventory(memory: [u64; 2]) -> Inventory {
        let gpu = |index: usize| Gpu { index, memory: memory[index] << 30, ..Gpu::default() };
        Inventory { gpus: vec![gpu(0), gpu(1)], ..Inventory::default() }
    }

    fn split(batch: i64, given: bool, list: &str) -> Result<Batch, (String, String)> {
        divide(batch, given, Some(list), (2, &GPUS), &inventory([24, 8]))
            .map_err(|error| (error.to_string(), error.hint().unwrap_or_default().into_owned()))
    }

    #[test]
    fn shares_are_explicit_or_in_proportion_to_memory() {
        assert_eq!(split(24, true, "16, 8").unwrap(), Batch { total: 24, split: vec![16, 8], note: None });
        assert_eq!(split(16, false, "30,3").unwrap().total, 33, "the default batch does not count");
        assert_eq!(split(8, true, "4,4").unwrap().split, [0; 0], "equal shares");
        let auto = split(33, true, "AUTO").unwrap();
        assert_eq!(auto.split, [25, 8]);
        assert_eq!(
            auto.note.unwrap(),
            "the batch is split by memory: 25 images on CUDA device 0, 8 images on CUDA device 1"
        );
        let on = |devices: &[Device], memory| {
            divide(12, true, Some("auto"), (devices.len(), devices), &inventory(memory)).unwrap()
        };
        // Two ranks share the large GPU.
        assert_eq!(on(&[Device::Cuda(0), Device::Cuda(1), Device::Cuda(0)], [32, 8]).split, [5, 2, 5]);
        assert_eq!(on(&GPUS, [24, 24]), Batch { total: 12, split: vec![], note: None });
        assert_eq!(on(&[Device::Cpu; 3], [24, 8]).split, [0; 0]);
        assert_eq!(on(&GPUS, [1000, 1]).split, [11, 1], "each rank has an image");
    }

    #[test]
    fn a_wrong_split_is_explained() {
        for (batch, list, message) in [
            (24, "16,9", "--batch-split 16,9 adds up to 25, but --batch is 24"),
            (24, "8,8,8", "--batch-split 8,8,8 has 3 shares, but there are 2 ranks"),
            (24, "24", "--batch-split 24 has 1 share, but there are 2 ranks"),
            (24, "24,0", "--batch-split 24,0: \"0\" is not a number of images, which is at least 1"),
            (24, "16,", "--batch-split 16,: \"\" is not a number of images, which is at least 1"),
            (24, "half", "--batch-split half: \"half\" is not a number of images, which is at least 1"),
            (1, "auto", "--batch 1 is less than one image for each of 2 ranks"),
            (0, "16,8", "--batch 0 is not a number of images: it must be at least 1"),
        ] {
            assert_eq!(split(batch, true, list).unwrap_err().0, message);
        }
        assert_eq!(split(24, true, "16,9").unwrap_err().1, "use --batch 25, or omit it");
        let unknown = divide(8, true, Some("auto"), (2, &GPUS), &inventory([24, 0])).unwrap_err().to_string();
        assert_eq!(unknown, "--batch-split auto: the driver does not report the memory of CUDA device 1");
        let equal = divide(9, true, Some("auto"), (2, &GPUS), &inventory([0, 0])).unwrap_err();
        assert!(equal.to_string().contains("does not report"), "{equal}");
    }

    #[test]
    fn what_no_number_of_ranks_makes_right_is_refused_before_it_is_known() {
        let check =
            |batch, split| check_before_ranks_are_known(batch, split).map_err(|error| error.to_string());
        assert_eq!((check(None, None), check(Some(7), Some("4, 3"))), (Ok(()), Ok(())));
        for (batch, split, message) in [
            (Some(0), None, "--batch 0 is not a number of images"),
            (None, Some("4,x"), "--batch-split 4,x: \"x\" is not a number of images"),
            (None, Some("Auto"), "--batch-split auto is for ranks on one machine"),
        ] {
            assert!(check(batch, split).unwrap_err().starts_with(message), "{message}");
        }
    }

    fn hint(batch: i64, ranks: usize) -> String {
        check(batch, ranks).unwrap_err().hint().unwrap_or_default().into_owned()
    }

    #[test]
    fn the_hint_names_the_nearest_multiples() {
        assert_eq!(check(16, 2).unwrap(), 16);
        assert_eq!(hint(15, 2), "use --batch 14 or 16");
        assert_eq!(hint(1, 2), "use --batch 2");
        assert_eq!(hint(13, 8), "use --batch 8 or 16");
        assert_eq!(
            check_replicas(15, 2).unwrap_err().to_string(),
            "--batch 15 cannot be divided among 2 devices: it is the total over all devices and must be a multiple of 2"
        );
    }

    #[test]
    fn a_batch_is_at_least_one_image() {
        for batch in [0, -3, i64::MIN] {
            let error = check(batch, 1).unwrap_err();
            assert!(error.to_string().contains(&format!("--batch {batch} ")), "{error}");
        }
        assert!(check(-1, 1).unwrap_err().to_string().contains("has no meaning here"));
    }
}
