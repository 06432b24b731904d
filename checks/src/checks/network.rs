//! Whether ranks can meet on this machine.

use crate::facts::{Fact, Facts};
use crate::finding::{Finding, Status};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    vec![match &facts.loopback {
        Fact::Known(port) => Finding::new("network.port", Status::Ok, "ranks can meet on 127.0.0.1")
            .seen(format!("the system gave port {port}; each run takes a free one")),
        Fact::Unknown(why) => Finding::new("network.port", Status::Error, why.clone()),
    }]
}
