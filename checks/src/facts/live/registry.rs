//! Values of the Windows registry.

use serde_json::Value;

#[cfg(not(windows))]
pub(super) fn ask(_: &str) -> Value {
    crate::facts::answer::of_error("only Windows has a registry")
}

/// `HKLM\path\to\key\value`: the last word is the name of the value.
#[cfg(windows)]
pub(super) fn ask(name: &str) -> Value {
    use serde_json::json;
    use windows_registry::{CURRENT_USER, LOCAL_MACHINE};

    let Some((root, rest)) = name.split_once('\\') else { return Value::Null };
    let Some((key, value)) = rest.rsplit_once('\\') else { return Value::Null };
    let root = match root {
        "HKLM" => LOCAL_MACHINE,
        "HKCU" => CURRENT_USER,
        _ => return Value::Null,
    };
    let Ok(key) = root.open(key) else { return Value::Null };
    key.get_u32(value)
        .map(|number| json!(number))
        .or_else(|_| key.get_string(value).map(|text| json!(text)))
        .unwrap_or(Value::Null)
}
