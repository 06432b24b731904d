//! Checks `--batch`: it is the total over all ranks, and a multiple of their number.

use crate::error::PlanError;

/// Checks a total batch against the number of ranks.
///
/// # Errors
/// When it is not positive, or not a multiple; the hint then names the nearest multiples.
pub fn check(batch: i64, ranks: usize) -> Result<usize, PlanError> {
    if batch == -1 {
        return Err(PlanError::new("--batch -1 (find the largest batch that fits) is not supported yet")
            .with_hint("give the number of images per step, for example --batch 16"));
    }
    let Some(total) = usize::try_from(batch).ok().filter(|total| *total > 0) else {
        return Err(PlanError::new(format!(
            "--batch {batch} is not a number of images: it must be at least 1"
        ))
        .with_hint("give the number of images per step, for example --batch 16"));
    };
    let ranks = ranks.max(1);
    if total % ranks == 0 {
        return Ok(total);
    }
    let below = total / ranks * ranks;
    let above = below.saturating_add(ranks);
    let nearest = if below == 0 { format!("{above}") } else { format!("{below} or {above}") };
    Err(PlanError::new(format!(
        "--batch {total} cannot be divided among {ranks} ranks: it is the total over all ranks and must be a multiple of {ranks}"
    ))
    .with_hint(format!("use --batch {nearest}")))
}

#[cfg(test)]
mod tests {
    use yolo_base::Hint as _;

    use super::check;

    fn hint(batch: i64, ranks: usize) -> String {
        check(batch, ranks).unwrap_err().hint().unwrap_or_default().into_owned()
    }

    #[test]
    fn the_hint_names_the_nearest_multiples() {
        assert_eq!(check(16, 2).unwrap(), 16);
        assert_eq!(hint(15, 2), "use --batch 14 or 16");
        assert_eq!(hint(1, 2), "use --batch 2");
        assert_eq!(hint(13, 8), "use --batch 8 or 16");
    }

    #[test]
    fn a_batch_is_at_least_one_image() {
        for batch in [0, -3, i64::MIN] {
            let error = check(batch, 1).unwrap_err();
            assert!(error.to_string().contains(&format!("--batch {batch} ")), "{error}");
        }
        assert!(check(-1, 1).unwrap_err().to_string().contains("not supported yet"));
    }
}
