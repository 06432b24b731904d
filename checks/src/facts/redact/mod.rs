//! What a recording must not tell: names of users and machines, MAC and public addresses, UUIDs,
//! addresses of mail, secrets. Each is replaced everywhere by the same stand-in, so that the
//! relations between answers stay. A stand-in of a name keeps its length, spaces and letters that
//! are not ASCII, since those break programs and so matter to checks. The names of fields and the
//! answers that are words of the format are never touched, whatever a user is called.

mod names;
mod numbers;
mod ordinary;
mod secrets;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use self::names::Names;
use self::numbers::Numbers;
use super::answer::decode;

/// What a text is, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A word of the format.
    Word,
    /// The name of a user or a machine, or an address.
    Name,
    /// Anything that may hold names, addresses and secrets.
    Text,
    /// The words of a process.
    Process,
    /// /etc/hosts.
    Hosts,
}

/// Variables that name a user or a machine.
const NAMING: [&str; 8] =
    ["USER", "LOGNAME", "USERNAME", "HOSTNAME", "COMPUTERNAME", "NAME", "WSL_HOST_NAME", "MASTER_ADDR"];
/// Variables whose values hold addresses.
const WITH_ADDRESSES: [&str; 6] = ["ADDR", "HOST", "COMM_ID", "PROXY", "SSH_", "ENDPOINT"];

/// Stand-ins, found in one recording.
#[derive(Debug, Default)]
pub(super) struct Redaction {
    names: Names,
    numbers: Numbers,
}

impl Redaction {
    /// Finds what to hide in a recording.
    pub(super) fn of(recording: &Value) -> Self {
        let mut numbers = Numbers::default();
        visit(&recording["interfaces"], &mut |text| numbers.know_interface(text));
        for place in [&recording["names"], &recording["listening"], &recording["binds"]] {
            visit(place, &mut |text| numbers.know(text));
        }
        visit(&recording["intent"]["master_addr"], &mut |text| numbers.know(text));
        for (name, value) in recording["env"].as_object().into_iter().flatten() {
            let upper = name.to_uppercase();
            if WITH_ADDRESSES.iter().any(|word| upper.contains(word)) {
                visit(value, &mut |text| numbers.know(text));
            }
        }
        visit(recording, &mut |text| numbers.know_certain(text));
        Self { names: Names::of(recording), numbers }
    }

    /// A recording with stand-ins.
    pub(super) fn recording(&mut self, recording: &Value) -> Value {
        let Some(sections) = recording.as_object() else { return self.texts(recording) };
        sections.iter().map(|(name, content)| (name.clone(), self.section(name, content))).collect()
    }

    /// Findings and the like, with the stand-ins of the recording.
    pub(super) fn texts(&mut self, value: &Value) -> Value {
        self.value(value, "", &|field| match field {
            "id" | "area" | "status" => Kind::Word,
            _ => Kind::Text,
        })
    }

    fn section(&mut self, section: &str, content: &Value) -> Value {
        // A field's texts by its name; those of no field, in a list, by that of the list.
        let fields: fn(&str) -> Kind = match section {
            "comment" | "places" | "nvml" => |_| Kind::Text,
            "hostname" => |_| Kind::Name,
            "system" => |field| if field == "kernel" { Kind::Word } else { Kind::Text },
            "user" => |field| if field == "name" { Kind::Name } else { Kind::Word },
            "intent" => |field| match field {
                "master_addr" => Kind::Name,
                "data" | "weights" | "model" | "project" | "resume" | "device_words" => Kind::Text,
                _ => Kind::Word,
            },
            "listening" => |field| match field {
                "address" | "user" => Kind::Name,
                _ => Kind::Word,
            },
            "interfaces" => |field| if field == "addresses" { Kind::Name } else { Kind::Word },
            "processes" => |field| if field == "command" { Kind::Process } else { Kind::Word },
            "files" | "heads" | "tails" | "links" | "folders" | "stats" | "filesystems" | "env"
            | "commands" | "libraries" | "names" | "registry" | "binds" => {
                return match content {
                    Value::Object(rows) => self.table(section, rows),
                    // A recording that somebody wrote wrongly.
                    other => self.texts(other),
                };
            }
            _ => |_| Kind::Word,
        };
        self.value(content, "", &|field| if field == "error" { Kind::Text } else { fields(field) })
    }

    /// A table, of which the names of the rows are answers too.
    fn table(&mut self, section: &str, rows: &Map<String, Value>) -> Value {
        let row = |(name, answer): (&String, &Value)| {
            let key = match section {
                // Names of variables, libraries and values are the program's own words.
                "env" | "libraries" | "registry" => name.clone(),
                "names" | "binds" => self.text(name, Kind::Name),
                _ => self.text(name, Kind::Text),
            };
            (key, self.row(section, name, answer))
        };
        Value::Object(rows.iter().map(row).collect())
    }

    fn row(&mut self, section: &str, name: &str, answer: &Value) -> Value {
        if section == "env" && secrets::is_secret_variable(name) && answer.is_string() {
            return Value::from("<hidden>");
        }
        let kind = match section {
            "env" if NAMING.contains(&name) => Kind::Name,
            "folders" if names::holds_homes(name) => Kind::Name,
            "files" if name.ends_with("etc/hosts") => Kind::Hosts,
            "names" => Kind::Name,
            "stats" | "binds" => Kind::Word,
            _ => Kind::Text,
        };
        let is_library = section == "libraries";
        self.value(answer, "", &|field| match field {
            "error" => Kind::Text,
            "type" | "version" | "via" if is_library || section == "filesystems" => Kind::Word,
            _ => kind,
        })
    }

    /// A value, whose texts are of the kind that the field around them has.
    fn value(&mut self, value: &Value, field: &str, kind: &dyn Fn(&str) -> Kind) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text, kind(field))),
            Value::Array(items) => items.iter().map(|item| self.value(item, field, kind)).collect(),
            Value::Object(map) => {
                if let Some(Value::String(encoded)) = map.get("base64") {
                    return self.encoded(encoded, kind(field));
                }
                let fields = map.iter();
                fields.map(|(name, item)| (name.clone(), self.value(item, name, kind))).collect()
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str, kind: Kind) -> String {
        let named = match kind {
            Kind::Word => return text.to_owned(),
            Kind::Name => self.names.name(text),
            Kind::Text => self.names.text(text),
            Kind::Process => self.names.text(&secrets::program_of(text)),
            Kind::Hosts => self.names.hosts_file(text),
        };
        self.numbers.replace(&secrets::without_secrets(&named))
    }

    /// UTF-16 text is redacted and encoded again. Of other bytes each is one letter here, so that
    /// those which nobody wrote stay as they are.
    fn encoded(&mut self, encoded: &str, kind: Kind) -> Value {
        let bytes = STANDARD.decode(encoded).unwrap_or_default();
        let is_marked = |mark: [u8; 2]| bytes.starts_with(&mark);
        let kept = if is_marked([0xFE, 0xFF]) {
            let text = self.text(&decode(&bytes), kind);
            [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect()
        } else if is_marked([0xFF, 0xFE]) {
            let text = self.text(&decode(&bytes), kind);
            [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
        } else if bytes.get(1) == Some(&0) {
            self.text(&decode(&bytes), kind).encode_utf16().flat_map(u16::to_le_bytes).collect()
        } else {
            let letters: String = bytes.iter().map(|&byte| char::from(byte)).collect();
            let text = self.text(&letters, kind);
            text.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?')).collect()
        };
        // Bytes that are no text in the end must not change on the way there and back.
        let is_same = self.text(&decode(&bytes), kind) == decode(&bytes);
        serde_json::json!({ "base64": STANDARD.encode(if is_same { bytes } else { kept }) })
    }
}

/// Calls `seen` with every text of a value, also with names of rows.
fn visit(value: &Value, seen: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => seen(text),
        Value::Array(items) => items.iter().for_each(|item| visit(item, seen)),
        Value::Object(map) => {
            if let Some(Value::String(encoded)) = map.get("base64") {
                seen(&decode(&STANDARD.decode(encoded).unwrap_or_default()));
            }
            for (name, item) in map {
                seen(name);
                visit(item, seen);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
