//! The losses of the steps of an epoch. Each step leaves its three loss items on the device, without another launch than
//! a copy, and they are read some steps later: waiting for them would leave a GPU without work. A loss that is not
//! finite is found when it is read. Training in float16 goes on after some of these, because the gradient scaler
//! skips optimizer steps whose gradients are not finite.

use tch::{Kind, Tensor, no_grad};
use tch_train::Reading;

use crate::error::TrainError;

/// Rows that are allocated at first; more when they are full.
const ROWS: i64 = 1024;
/// In float16, a run has diverged after this many losses in a row that are not finite. YOLOv5 has no such limit, and
/// repeats steps that change nothing until its epochs are over.
const TOO_MANY_IN_A_ROW: usize = 20;

/// The losses of the part of an epoch that is done, as a checkpoint keeps them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LossSums {
    /// The sums of box, objectness and class loss over the batches that count.
    pub sums: [f64; 3],
    /// Batches that do not count, because their loss was not finite in float16.
    pub left_out: usize,
}

impl LossSums {
    /// The part of them that belongs to `share` of the batches. The means stay what they were.
    #[must_use]
    pub fn part(self, share: f64) -> Self {
        let left_out = (self.left_out as f64 * share).round() as usize;
        Self { sums: self.sums.map(|sum| sum * share), left_out }
    }
}

/// Why a run has diverged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Diverged {
    /// Box, objectness or class.
    pub(crate) part: &'static str,
    /// The value that is not finite.
    pub(crate) value: f32,
    /// The batch of the epoch, counted from 1.
    pub(crate) batch: usize,
    /// How many batches in a row had such a loss.
    pub(crate) in_a_row: usize,
}

/// The losses of one epoch.
#[derive(Debug, Default)]
pub(crate) struct EpochLosses {
    /// Those that have been read, and those of an earlier process.
    done: LossSums,
    /// Batches of an earlier process.
    earlier: usize,
    /// One row for each step of this process, on its device.
    rows: Option<Tensor>,
    /// Steps of this process, and how many of them have been counted.
    steps: usize,
    read: usize,
    /// The next of them, on their way from the device.
    reading: Option<Reading>,
    /// How many in a row end the run; 0 if every one does.
    too_many: usize,
    in_a_row: usize,
    diverged: Option<Diverged>,
}

impl EpochLosses {
    /// Continues after the losses of the first `earlier` batches. `scaled` says whether there is a gradient scaler, with
    /// which losses that are not finite are left out.
    pub(crate) fn new(done: LossSums, earlier: usize, scaled: bool) -> Self {
        let too_many = if scaled { TOO_MANY_IN_A_ROW } else { 0 };
        Self { done, earlier, too_many, ..Self::default() }
    }

    /// Adds a step: its three loss items, which stay on their device.
    pub(crate) fn add(&mut self, items: &Tensor) -> Result<(), TrainError> {
        let rows = match self.rows.take() {
            Some(rows) if (self.steps as i64) < rows.size()[0] => rows,
            Some(full) => Tensor::f_cat(&[&full, &full.f_zeros_like()?], 0)?,
            None => Tensor::f_zeros([ROWS, 3], (Kind::Float, items.device()))?,
        };
        let mut row = rows.f_get(self.steps as i64)?;
        no_grad(|| row.f_copy_(items))?;
        self.rows = Some(rows);
        self.steps += 1;
        Ok(())
    }

    /// Whether losses are on their way from the device.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Begins to read the losses that have not been read yet, without waiting for the device: it has them when it has
    /// done the steps so far. [`Self::take`] counts them. If others are on their way, it waits for these first.
    pub(crate) fn begin_reading(&mut self) -> Result<(), TrainError> {
        self.take()?;
        if let Some(rows) = &self.rows {
            let unread = (self.steps - self.read) as i64;
            self.reading = Some(Reading::begin(&rows.f_narrow(0, self.read as i64, unread)?)?);
        }
        Ok(())
    }

    /// Whether the losses that are being read have arrived. Does not wait.
    pub(crate) fn have_arrived(&self) -> Result<bool, TrainError> {
        Ok(self.reading.as_ref().map_or(Ok(true), Reading::has_arrived)?)
    }

    /// Counts the losses that are being read and returns the means of box, objectness and class loss since the start of
    /// the epoch. Waits until they have arrived.
    pub(crate) fn take(&mut self) -> Result<[f64; 3], TrainError> {
        if let Some(reading) = self.reading.take() {
            let rows = Vec::<f32>::try_from(reading.finish()?.f_reshape([-1])?)?;
            for row in rows.chunks_exact(3) {
                self.count(row);
            }
        }
        Ok(self.means())
    }

    /// Counts all losses so far. Waits for the device.
    pub(crate) fn take_all(&mut self) -> Result<[f64; 3], TrainError> {
        self.begin_reading()?;
        self.take()
    }

    /// The losses so far, of which [`Self::take_all`] counted all.
    pub(crate) fn sums(&self) -> LossSums {
        self.done
    }

    /// Why training has diverged, if it has.
    pub(crate) fn diverged(&self) -> Option<Diverged> {
        self.diverged
    }

    fn count(&mut self, row: &[f32]) {
        self.read += 1;
        let bad = row.iter().zip(["box", "objectness", "class"]).find(|(loss, _)| !loss.is_finite());
        if bad.is_some() && self.too_many > 0 {
            self.done.left_out += 1;
        } else {
            self.done.sums.iter_mut().zip(row).for_each(|(sum, &loss)| *sum += f64::from(loss));
        }
        self.in_a_row = if bad.is_some() { self.in_a_row + 1 } else { 0 };
        if let Some((&value, part)) = bad.filter(|_| self.in_a_row >= self.too_many) {
            let (batch, in_a_row) = (self.earlier + self.read, self.in_a_row);
            self.diverged.get_or_insert(Diverged { part, value, batch, in_a_row });
        }
    }

    fn means(&self) -> [f64; 3] {
        let counted = (self.earlier + self.read).saturating_sub(self.done.left_out);
        self.done.sums.map(|sum| sum / counted.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INF: [f32; 3] = [1.0, f32::INFINITY, f32::NAN];

    fn new(scaled: bool) -> EpochLosses {
        EpochLosses::new(LossSums::default(), 0, scaled)
    }

    fn add(losses: &mut EpochLosses, items: [f32; 3]) {
        losses.add(&Tensor::from_slice(&items)).unwrap();
    }

    #[test]
    fn losses_are_means_over_the_steps() {
        let mut losses = new(false);
        add(&mut losses, [1.0, 2.0, 3.0]);
        add(&mut losses, [3.0, 2.0, 1.0]);
        assert_eq!(losses.take_all().unwrap(), [2.0, 2.0, 2.0]);
        assert_eq!(losses.take_all().unwrap(), [2.0, 2.0, 2.0], "each counts once");
        assert_eq!(losses.diverged(), None);
    }

    #[test]
    fn a_resumed_epoch_has_the_means_of_all_its_steps() {
        let earlier = LossSums { sums: [2.0, 4.0, 6.0], left_out: 0 };
        let mut losses = EpochLosses::new(earlier, 2, false);
        assert_eq!(losses.take_all().unwrap(), [1.0, 2.0, 3.0], "also without another step");
        add(&mut losses, [4.0, 5.0, 6.0]);
        assert_eq!(losses.take_all().unwrap(), [2.0, 3.0, 4.0]);
        assert_eq!(losses.sums().sums, [6.0, 9.0, 12.0]);
    }

    #[test]
    fn losses_that_are_read_later_are_those_of_their_step() {
        let mut losses = new(false);
        add(&mut losses, [1.0, 2.0, 3.0]);
        losses.begin_reading().unwrap();
        add(&mut losses, [3.0, 2.0, 1.0]);
        assert!(losses.is_reading() && losses.have_arrived().unwrap());
        assert_eq!(losses.take().unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(losses.take().unwrap(), [1.0, 2.0, 3.0], "nothing else is being read");
        // Another reading begins before the first was taken.
        losses.begin_reading().unwrap();
        add(&mut losses, [8.0, 8.0, 8.0]);
        losses.begin_reading().unwrap();
        assert_eq!(losses.take().unwrap(), [4.0, 4.0, 4.0]);
        assert_eq!(losses.take_all().unwrap(), [4.0, 4.0, 4.0]);
    }

    #[test]
    fn an_epoch_may_have_more_steps_than_rows() {
        let mut losses = new(false);
        let steps = 2 * ROWS + 5;
        for step in 0..steps {
            add(&mut losses, [step as f32; 3]);
        }
        assert_eq!(losses.take_all().unwrap(), [(steps - 1) as f64 / 2.0; 3]);
    }

    #[test]
    fn without_a_scaler_one_loss_that_is_not_finite_ends_the_run() {
        let mut losses = EpochLosses::new(LossSums::default(), 3, false);
        add(&mut losses, [1.0; 3]);
        add(&mut losses, INF);
        add(&mut losses, [f32::NAN; 3]);
        let means = losses.take_all().unwrap();
        assert!(means[0].is_nan() && means[1].is_nan());
        let first = Diverged { part: "objectness", value: f32::INFINITY, batch: 5, in_a_row: 1 };
        assert_eq!(losses.diverged(), Some(first));
    }

    #[test]
    fn with_a_scaler_a_loss_that_is_not_finite_does_not_count() {
        let mut losses = new(true);
        for _ in 0..TOO_MANY_IN_A_ROW {
            add(&mut losses, [2.0; 3]);
            add(&mut losses, INF);
        }
        assert_eq!(losses.take_all().unwrap(), [2.0; 3]);
        assert_eq!((losses.sums().left_out, losses.diverged()), (TOO_MANY_IN_A_ROW, None));
        // Continued from a checkpoint.
        let mut losses = EpochLosses::new(losses.sums(), 2 * TOO_MANY_IN_A_ROW, true);
        add(&mut losses, [5.0; 3]);
        assert_eq!(losses.take_all().unwrap(), [(2.0 * 20.0 + 5.0) / 21.0; 3]);
    }

    #[test]
    fn with_a_scaler_many_in_a_row_end_the_run() {
        let mut losses = new(true);
        add(&mut losses, [1.0; 3]);
        for _ in 1..TOO_MANY_IN_A_ROW {
            add(&mut losses, INF);
        }
        assert_eq!((losses.take_all().unwrap(), losses.diverged()), ([1.0; 3], None));
        add(&mut losses, INF);
        assert_eq!(losses.take_all().unwrap(), [1.0; 3]);
        let Diverged { batch, in_a_row, .. } = losses.diverged().unwrap();
        assert_eq!((batch, in_a_row), (TOO_MANY_IN_A_ROW + 1, TOO_MANY_IN_A_ROW));
    }
}
