//! Whether memory suffices for the next row on the CPU. There, a run that takes too much slows down the
//! whole machine, and the kernel may kill other programs, so such a run is not started.

use yolo_base::format::memory;
use yolo_plan::bench_tables::{Epochs, Row};

/// The memory that programs can still take, in bytes; `None` if the system does not report it.
pub(crate) fn available() -> Option<u64> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let of_machine = Some(system.available_memory()).filter(|bytes| *bytes > 0);
    let of_group = system.cgroup_limits().map(|limits| limits.free_memory);
    of_machine.into_iter().chain(of_group).min()
}

/// Why a run with `ranks` ranks and this batch per rank is not started after `measured`, the rows before it
/// in its series, if so much memory is available.
pub(super) fn refusal(measured: &[&Row], ranks: usize, batch: usize, available: u64) -> Option<String> {
    let needed = expected(measured, batch)?.saturating_mul(ranks as u64);
    (needed > available).then(|| {
        format!(
            "it would need about {}, going by the rows before, and {} is available",
            memory(needed),
            memory(available)
        )
    })
}

/// The memory of a rank with this batch: that of the last measured row if the batch is the same, and
/// otherwise continued in a straight line from the last two.
fn expected(measured: &[&Row], batch: usize) -> Option<u64> {
    let point = |row: &&Row| {
        let Epochs { memory, .. } = row.outcome.epochs()?;
        Some((row.batch_per_device as f64, *memory as f64))
    };
    let points: Vec<(f64, f64)> = measured.iter().filter_map(point).collect();
    if let Some((_, memory)) = points.last().filter(|(same, _)| *same == batch as f64) {
        return Some(*memory as u64);
    }
    let [.., (batch_1, memory_1), (batch_2, memory_2)] = points[..] else { return None };
    if batch_2 <= batch_1 || memory_2 <= memory_1 {
        return None;
    }
    let slope = (memory_2 - memory_1) / (batch_2 - batch_1);
    Some((memory_2 + slope * (batch as f64 - batch_2)).max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use yolo_plan::bench_report::{Rate, Together};
    use yolo_plan::bench_tables::Outcome;

    use super::*;

    fn row(batch: usize, gibibytes: u64) -> Row {
        Row {
            devices: vec!["cpu".to_owned()],
            batch,
            batch_per_device: batch,
            threads_per_device: 1,
            workers_per_device: 1,
            outcome: Outcome::of(&Together {
                training: vec![Rate::new(8, 1.0)],
                training_images: 8,
                validation: Vec::new(),
                validation_images: 0,
                memory: vec![gibibytes << 30],
            }),
        }
    }

    #[test]
    fn memory_grows_with_the_batch() {
        let (four, eight) = (row(4, 2), row(8, 3));
        let rows = [&four, &eight];
        assert_eq!(expected(&rows, 16), Some(5 << 30));
        assert_eq!(refusal(&rows, 2, 16, 10 << 30), None);
        assert_eq!(
            refusal(&rows, 2, 16, 9 << 30).unwrap(),
            "it would need about 10.0 GiB, going by the rows before, and 9.0 GiB is available"
        );
    }

    #[test]
    fn too_few_rows_predict_nothing() {
        let (four, same) = (row(4, 2), row(8, 2));
        assert_eq!(expected(&[&four], 16), None);
        assert_eq!(expected(&[&four, &same], 16), None);
    }

    #[test]
    fn ranks_with_the_same_batch_need_the_same() {
        let one = row(16, 3);
        assert_eq!(refusal(&[&one], 2, 16, 6 << 30), None);
        assert!(refusal(&[&one], 4, 16, 6 << 30).is_some());
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(available().is_none_or(|bytes| (1 << 20..1 << 50).contains(&bytes)));
    }
}
