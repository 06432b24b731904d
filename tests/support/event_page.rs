//! The page of the events of `--json`, made from their schema: a section for each event, with its fields and an
//! example.

use serde_json::{Map, Value};

/// The page.
pub(crate) fn page(schema: &Value) -> String {
    let mut page = "# Events\n\nGenerated from [`run_events.schema.json`](../src/printer/run_events.schema.json) by a test; \
                    do not edit.\n\n`yolo train`, `val`, `predict`, `export` and `rank` print these events with `--json`: \
                    one JSON object per line on stdout, as it happens. Messages for people stay on stderr. \
                    [Compatibility](compatibility.md) says what may change.\n\nEvery event has these fields:\n"
        .to_owned();
    page += &table(schema, schema);
    for name in schema["properties"]["event"]["enum"].as_array().unwrap() {
        let event = of_name(schema, name);
        page += &format!("\n## {}\n\n{}\n", name.as_str().unwrap(), description(schema, event));
        page += &table(schema, event);
        for example in event["examples"].as_array().unwrap() {
            page += &format!("\n```json\n{example}\n```\n");
        }
    }
    page
}

/// The part of the schema about an event.
fn of_name<'a>(schema: &'a Value, name: &Value) -> &'a Value {
    let all = schema["oneOf"].as_array().unwrap();
    all.iter().find(|event| event["properties"]["event"]["const"] == *name).unwrap()
}

/// The fields of an object in a table, without those that every event has.
fn table(schema: &Value, object: &Value) -> String {
    let mut rows = Vec::new();
    add_fields(schema, object, "", &mut rows);
    let common = |row: &String| row.starts_with("| `event` |") || row.starts_with("| `at` |");
    if object.get("oneOf").is_none() {
        rows.retain(|row| !common(row));
    }
    format!("\n| field | value | meaning |\n|---|---|---|\n{}\n", rows.join("\n"))
}

/// Adds the fields of an object, and of the objects in it.
fn add_fields(schema: &Value, object: &Value, within: &str, rows: &mut Vec<String>) {
    let empty = Map::new();
    let fields = object["properties"].as_object().unwrap_or(&empty);
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in fields {
        let path = format!("{within}{name}");
        let all = resolved(schema, field);
        let mut kinds: Vec<String> = all.iter().flat_map(|part| kinds(part)).collect();
        kinds.dedup();
        // Only the first event of a run has it.
        let absent = !required.contains(&name.as_str()) && within.is_empty() && *field != Value::Bool(true);
        let kind = kinds.join(" or ") + if absent { ", or absent" } else { "" };
        let about =
            if name == "event" { "The kind of event.".to_owned() } else { description(schema, field) };
        rows.push(format!("| `{path}` | {kind} | {about} |"));
        for part in all {
            add_fields(schema, part, &format!("{path}."), rows);
            for item in part.get("items").into_iter().flat_map(|items| resolved(schema, items)) {
                add_fields(schema, item, &format!("{path}[]."), rows);
            }
        }
    }
}

/// What a part of the schema stands for: what it refers to, or each of its alternatives.
fn resolved<'a>(schema: &'a Value, part: &'a Value) -> Vec<&'a Value> {
    if let Some(to) = part["$ref"].as_str() {
        return resolved(schema, schema.pointer(to.trim_start_matches('#')).unwrap());
    }
    match part["oneOf"].as_array() {
        Some(alternatives) => alternatives.iter().flat_map(|one| resolved(schema, one)).collect(),
        None => vec![part],
    }
}

/// The values that a part of the schema allows, in words.
fn kinds(part: &Value) -> Vec<String> {
    if let Some(values) = part["enum"].as_array() {
        return values.iter().map(|value| format!("`{}`", value.to_string().trim_matches('"'))).collect();
    }
    if let Some(value) = part.get("const") {
        return vec![format!("`{value}`")];
    }
    let name = |kind: &Value| {
        match kind.as_str().unwrap_or("?") {
            "integer" => "whole number",
            "boolean" => "`true` or `false`",
            "string" => "text",
            "array" => "list",
            "null" => "`null`",
            other => return other.to_owned(),
        }
        .to_owned()
    };
    match &part["type"] {
        Value::Array(kinds) => kinds.iter().map(name).collect(),
        kind => vec![name(kind)],
    }
}

/// What a part of the schema says about itself.
fn description(schema: &Value, part: &Value) -> String {
    let own = part["description"].as_str();
    let all = resolved(schema, part);
    let text = own.or_else(|| all.iter().find_map(|part| part["description"].as_str()));
    text.unwrap_or_default().replace('|', "\\|")
}

/// Fields of the schema without a description, by event.
pub(crate) fn undescribed(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for event in schema["oneOf"].as_array().unwrap() {
        let name = event["properties"]["event"]["const"].as_str().unwrap();
        let rows = table(schema, event);
        found.extend(rows.lines().filter(|row| row.ends_with("|  |")).map(|row| format!("{name}: {row}")));
        if event["examples"].as_array().is_none_or(Vec::is_empty) {
            found.push(format!("{name}: no example"));
        }
    }
    found
}
