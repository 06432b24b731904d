//! How busy the GPUs of a run are, as text for its status line.

use yolo_base::format::memory;
use yolo_checks::GpuLoad;

/// GPUs that are listed one by one; more are summarized.
const LISTED: usize = 2;

/// `GPU: 71 %, 10.2 GiB of 24.0 GiB`; `None` if nothing is known.
pub(super) fn in_words(loads: &[GpuLoad]) -> Option<String> {
    if loads.is_empty() {
        return None;
    }
    if let [one] = loads {
        return Some(format!("GPU: {}{} of {}", busy(one.busy), memory(one.used), memory(one.total)));
    }
    if loads.len() <= LISTED {
        let each: Vec<String> = loads
            .iter()
            .map(|load| format!("GPU {}: {}{}", load.gpu, busy(load.busy), memory(load.used)))
            .collect();
        return Some(each.join("; "));
    }
    let used = loads.iter().map(|load| load.used).max().unwrap_or(0);
    let all: Option<Vec<u32>> = loads.iter().map(|load| load.busy).collect();
    let range = all.and_then(|all| Some((*all.iter().min()?, *all.iter().max()?)));
    let range = match range {
        Some((least, most)) if least < most => format!("{least}–{most} %, "),
        Some((least, _)) => format!("{least} %, "),
        None => String::new(),
    };
    Some(format!("{} GPUs: {range}at most {}", loads.len(), memory(used)))
}

fn busy(percent: Option<u32>) -> String {
    percent.map(|percent| format!("{percent} %, ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(gpu: usize, busy: Option<u32>) -> GpuLoad {
        GpuLoad { gpu, busy, used: (10 + gpu as u64) << 30, total: 24 << 30 }
    }

    #[test]
    fn few_gpus_are_listed_and_many_are_summarized() {
        assert_eq!(in_words(&[]), None);
        assert_eq!(in_words(&[load(0, Some(71))]).unwrap(), "GPU: 71 %, 10.0 GiB of 24.0 GiB");
        assert_eq!(in_words(&[load(2, None)]).unwrap(), "GPU: 12.0 GiB of 24.0 GiB");
        let two = [load(0, Some(71)), load(1, Some(68))];
        assert_eq!(in_words(&two).unwrap(), "GPU 0: 71 %, 10.0 GiB; GPU 1: 68 %, 11.0 GiB");
        let four: Vec<GpuLoad> = (0..4).map(|gpu| load(gpu, Some(60 + gpu as u32))).collect();
        assert_eq!(in_words(&four).unwrap(), "4 GPUs: 60–63 %, at most 13.0 GiB");
    }
}
