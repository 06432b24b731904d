//! `--workers` of `yolo train` and `yolo bench`: a number, or `auto`.

use serde::Serialize;

use crate::number::whole;

/// The number of loader threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Workers {
    /// Measure how many a run needs.
    Auto,
    /// This many.
    #[serde(untagged)]
    Count(usize),
}

impl Workers {
    /// Parses the value of the option.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(Self::Auto);
        }
        whole(text).map(Self::Count).map_err(|why| match why {
            "not a whole number" => "not a whole number, and not auto",
            other => other,
        })
    }

    /// The most threads that it allows; planning limits them to the cores.
    pub fn most(self) -> usize {
        match self {
            Self::Auto => usize::MAX,
            Self::Count(count) => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_auto() {
        assert_eq!(Workers::parse("auto"), Ok(Workers::Auto));
        assert_eq!(Workers::parse("AUTO"), Ok(Workers::Auto));
        assert_eq!(Workers::parse("3"), Ok(Workers::Count(3)));
        assert_eq!(Workers::parse("many"), Err("not a whole number, and not auto"));
        assert_eq!(Workers::parse("-1"), Err("the number must not be negative"));
    }

    #[test]
    fn a_plan_has_the_number_or_the_word() {
        let json = |workers| serde_json::to_value(workers).unwrap();
        assert_eq!((json(Workers::Auto), json(Workers::Count(3))), ("auto".into(), 3.into()));
    }
}
