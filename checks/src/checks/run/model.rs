//! Whether the weights match the model: tensors of different sizes keep their random values, so
//! training would start nearly from scratch.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::memory_estimate::Model;

pub(super) static CHECK: Check =
    Check { question: "Do the weights fit the model?", reports: &["run.other-model"], preflight: true, run };

fn run(_: &Host, intent: &Intent) -> Answer {
    let named = |word: &Option<String>| word.as_deref().and_then(Model::named);
    let (Some(model), Some(weights)) = (named(&intent.model), named(&intent.weights)) else {
        return Ok(Vec::new());
    };
    if model == weights {
        return Ok(Vec::new());
    }
    let title = format!("the weights are for {}, but --cfg asks for {}", weights.name, model.name);
    let remedy = format!("use weights for the same model, with `--weights {}.pt`, or omit --cfg", model.name);
    Ok(vec![Finding::new("run.other-model", title).remedy(remedy)])
}
