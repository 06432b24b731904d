//! The text of `yolo weights`: what is in a file, and how two files differ.

use std::path::PathBuf;

use serde_json::Value;
use yolo_base::format::{bytes, count, count_of, list};
use yolo_base::percent_g::percent_g;

use super::wrap::{cut, wrap};
use crate::weights_file::{Description, Difference, Model, Opener, PythonCall, TensorDifferences, Training};

/// At most this many class names, options, tensors and calls are listed without `--verbose`.
const SHOWN: usize = 12;
/// Letters of a value that differs.
const VALUE: usize = 60;
/// The options that say most about a training, as `opt.yaml` names them.
const OPTIONS: [&str; 9] =
    ["weights", "cfg", "data", "epochs", "batch_size", "imgsz", "optimizer", "device", "seed"];

/// What Python imports and calls to open a file without a pickle.
pub(super) const NO_PICKLE: &str = "nothing is imported: the file has no pickle";
/// Letters of the name of a fact or a tensor.
const NAME: usize = 120;
/// Significant digits of a difference.
const DIGITS: usize = 4;

/// The description of a file.
pub(crate) fn description(file: &Description, verbose: bool) -> String {
    let mut lines = vec![file.file.display().to_string(), line("Format", &format(file))];
    if let Some(model) = &file.model {
        lines.extend(of_model(model, verbose));
    }
    if let Some(training) = &file.training {
        lines.extend(of_training(training, verbose));
    }
    lines.extend(openers(&file.opens_in));
    lines.extend(of_python(file, verbose));
    if let (true, Some(content)) = (verbose, &file.content) {
        lines.push("  Tensors".to_owned());
        lines.extend(
            content
                .tensors
                .iter()
                .map(|(name, tensor)| format!("    {name}  {} {:?}", tensor.dtype.name(), tensor.shape)),
        );
    }
    lines.push(line("SHA-256", &file.sha256));
    lines.join("\n")
}

/// A line or more with a title.
pub(super) fn line(title: &str, text: &str) -> String {
    wrap(&format!("  {title:<10}"), text)
}

fn format(file: &Description) -> String {
    let layout = match file.format {
        "zip" => "PyTorch checkpoint",
        "legacy" => "PyTorch checkpoint in the layout before version 1.6",
        "torchscript" => "TorchScript export",
        "pickle" => "pickle, not in PyTorch's layout",
        other => other,
    };
    let protocol = file.pickle_protocol.map(|protocol| format!(", pickle protocol {protocol}"));
    format!("{layout}{}, {}", protocol.unwrap_or_default(), bytes(file.bytes))
}

fn of_model(model: &Model, verbose: bool) -> Vec<String> {
    let architecture = model.architecture.as_deref().unwrap_or("a model that the file does not describe");
    let types: Vec<String> =
        model.tensors.iter().map(|(name, number)| format!("{number} of type {name}")).collect();
    let tensors = model.tensors.values().sum::<usize>();
    let mut text = format!(
        "{architecture}: {} in {} ({})",
        count_of(usize::try_from(model.parameters).unwrap_or(usize::MAX), "parameter", "parameters"),
        count(tensors, "tensor"),
        list(&types),
    );
    if !model.strides.is_empty() {
        let strides: Vec<String> = model.strides.iter().map(ToString::to_string).collect();
        text.push_str(&format!("; {} {}", count_of_word(strides.len(), "stride"), list(&strides)));
    }
    if model.is_average {
        text.push_str("; these are the moving average; the file also has the trained weights");
    }
    let classes = match &model.classes {
        None => "the file has no names".to_owned(),
        Some(names) => format!("{}: {}", names.len(), several(names, verbose)),
    };
    vec![line("Model", &text), line("Classes", &classes)]
}

fn count_of_word(number: usize, word: &str) -> String {
    if number == 1 { word.to_owned() } else { format!("{word}s") }
}

/// Names with commas; only the first of many.
pub(super) fn several(names: &[String], all: bool) -> String {
    let shown = if all { names.len() } else { SHOWN };
    let mut text = names.iter().take(shown).map(|name| cut(name, VALUE)).collect::<Vec<_>>().join(", ");
    if names.len() > shown {
        text.push_str(&format!(" and {} more", names.len() - shown));
    }
    text
}

fn of_training(training: &Training, verbose: bool) -> Vec<String> {
    let mut facts: Vec<String> = progress(training).into_iter().collect();
    if let Some(fitness) = training.best_fitness {
        let epoch = training.best_epoch.map(|epoch| format!(" in epoch {epoch}"));
        facts.push(format!("best fitness {fitness:.4}{}", epoch.unwrap_or_default()));
    }
    if let Some(size) = training.image_size {
        facts.push(format!("images of {size} px"));
    }
    if let Some(writer) = &training.written_by {
        facts.push(format!("written by {writer}"));
    }
    if let Some(date) = &training.date {
        facts.push(date.clone());
    }
    let mut lines = Vec::new();
    if !facts.is_empty() {
        lines.push(line("Training", &facts.join(", ")));
    }
    for (title, values) in [("Options", &training.options), ("Hyp", &training.hyperparameters)] {
        if values.is_empty() {
            continue;
        }
        let main = |name: &str| verbose || title == "Options" && OPTIONS.contains(&name);
        let shown: Vec<String> = values
            .iter()
            .filter(|(name, _)| main(name))
            .map(|(name, value)| format!("{name}={}", cut(&plain(value), VALUE)))
            .collect();
        let hidden = values.len() - shown.len();
        let mut text = shown.join(", ");
        if hidden > 0 {
            let more = if shown.is_empty() { "" } else { " and " };
            let noun = if shown.is_empty() { "" } else { " more" };
            text.push_str(&format!("{more}{hidden}{noun} (--verbose lists them)"));
        }
        if let (true, Some(from)) = (title == "Options", &training.options_from) {
            text.push_str(&format!("; from {from}"));
        }
        lines.push(line(title, &text));
    }
    lines
}

/// How far the run has come, and whether it goes on from the file.
fn progress(training: &Training) -> Option<String> {
    let planned = training.epochs_planned;
    let resumed = if training.can_resume { ", can be resumed" } else { "" };
    Some(match (training.finished, training.epochs_done) {
        (Some(true), None) => "finished, so the file has only weights".to_owned(),
        (Some(true), Some(done)) => match planned {
            Some(planned) if planned > done => {
                format!("finished after {done} of {}, so the file has only weights", count_epochs(planned))
            }
            _ => format!("finished after {}, so the file has only weights", count_epochs(done)),
        },
        (_, None) => return None,
        (_, Some(0)) => {
            let of = planned.map_or_else(String::new, |planned| format!(" of {planned}"));
            format!("interrupted in epoch 1{of}{resumed}")
        }
        (_, Some(done)) => match planned {
            Some(planned) if planned > done => format!("{done} of {} done{resumed}", count_epochs(planned)),
            _ => format!("{} done{resumed}", count_epochs(done)),
        },
    })
}

fn count_epochs(epochs: i64) -> String {
    count(usize::try_from(epochs).unwrap_or_default(), "epoch")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

/// Which programs open a file.
pub(super) fn openers(openers: &[Opener]) -> impl Iterator<Item = String> {
    let title = |number| if number == 0 { "Opens in" } else { "" };
    openers.iter().enumerate().map(move |(number, opener)| line(title(number), &of_opener(opener)))
}

fn of_opener(opener: &Opener) -> String {
    let answer = if opener.opens { "yes" } else { "no" };
    match &opener.note {
        Some(note) => format!("{}: {answer}, {note}", opener.program),
        None => format!("{}: {answer}", opener.program),
    }
}

/// What Python would execute: what is unknown first, and then, with `--verbose`, what is known.
fn of_python(file: &Description, verbose: bool) -> Vec<String> {
    if file.pickle_protocol.is_none() {
        return vec![line("In Python", NO_PICKLE)];
    }
    let (known, unknown): (Vec<&PythonCall>, Vec<&PythonCall>) =
        file.python.iter().partition(|one| one.known);
    let mut lines = Vec::new();
    let summary = match unknown.len() {
        0 => "nothing is executed but what builds tensors, plain values and layers of models".to_owned(),
        number => format!(
            "{} would be executed that is not needed to load a model:",
            count_of(number, "thing", "things")
        ),
    };
    lines.push(line("In Python", &summary));
    let shown = if verbose { usize::MAX } else { SHOWN };
    for call in unknown.iter().take(shown) {
        lines.push(wrap("              ", &of_call(call)));
    }
    if unknown.len() > shown {
        lines.push(wrap("              ", &format!("and {} more", unknown.len() - shown)));
    }
    if let Some(problem) = &file.python_unknown_after {
        lines.push(wrap("              ", &format!("and what comes later is unknown: the file {problem}")));
    }
    if verbose {
        lines.extend(known.iter().map(|call| format!("              {} ×{}", call.name, call.calls)));
    }
    lines
}

fn of_call(call: &PythonCall) -> String {
    match (&call.arguments, call.calls) {
        (_, 0) => format!("import of {}", call.name),
        (Some(arguments), 1) => format!("{}{arguments}", call.name),
        (Some(arguments), calls) => {
            format!("{}{arguments}, and {} more", call.name, count(calls - 1, "call"))
        }
        (None, calls) => format!("{} ×{calls}", call.name),
    }
}

/// How two files differ.
pub(crate) fn differences(
    files: [&PathBuf; 2],
    facts: &[Difference],
    tensors: Option<&TensorDifferences>,
    verbose: bool,
) -> String {
    let mut lines = different_facts(files, facts);
    match tensors {
        None => lines.push("the tensors cannot be compared, because a file is refused".to_owned()),
        Some(tensors) => lines.extend(of_tensors(tensors, verbose)),
    }
    lines.join("\n")
}

/// The names of two files, and the facts in which they differ.
fn different_facts(files: [&PathBuf; 2], facts: &[Difference]) -> Vec<String> {
    let mut lines = vec![format!("a: {}", files[0].display()), format!("b: {}", files[1].display())];
    for difference in facts {
        let [a, b] = difference.values.each_ref().map(|value| cut(&plain(value), VALUE));
        lines.push(format!("{}: a {a}, b {b}", cut(&difference.what, NAME)));
    }
    lines
}

fn of_tensors(tensors: &TensorDifferences, verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (file, only) in ["a", "b"].iter().zip(&tensors.only_in) {
        if !only.is_empty() {
            lines.push(format!("only in {file}: {}", several(only, verbose)));
        }
    }
    let shown = if verbose { usize::MAX } else { SHOWN };
    for difference in tensors.shapes.iter().take(shown) {
        let [a, b] = &difference.values;
        lines.push(format!("shape of {}: a {a}, b {b}", cut(&difference.what, NAME)));
    }
    if tensors.types > 0 {
        lines.push(format!("{} of different types", count(tensors.types, "tensor")));
    }
    let compared = tensors.equal + tensors.values.len();
    lines.push(match tensors.values.len() {
        0 if compared == 0 => "no tensors of the same name and shape".to_owned(),
        0 => format!("{} compared, all values equal", count(compared, "tensor")),
        different => format!("{} compared, {different} with different values:", count(compared, "tensor")),
    });
    for value in tensors.values.iter().take(shown) {
        let relative = value.relative.map(|relative| format!(", {:.2} % on average", relative * 100.0));
        lines.push(format!(
            "  {}: at most {}{}",
            cut(&value.name, NAME),
            percent_g(value.largest, DIGITS),
            relative.unwrap_or_default()
        ));
    }
    if tensors.values.len() > shown {
        lines.push(format!("  and {} more (--verbose lists them)", tensors.values.len() - shown));
    }
    lines
}
