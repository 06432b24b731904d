//! Values of the Windows registry.

use serde_json::Value;

#[cfg(not(windows))]
pub(super) fn ask(_: &str) -> Value {
    crate::facts::answer::of_error("the registry exists on Windows only")
}

/// `HKLM\path\to\key\value`: the last part is the name of the value.
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

#[cfg(test)]
#[cfg(windows)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_by_its_path_and_a_missing_one_is_null() {
        let windows = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion";
        let build = ask(&format!(r"{windows}\CurrentBuildNumber"));
        assert!(build.as_str().is_some_and(|build| build.parse::<u32>().is_ok()), "{build}");
        for name in ["no-such-value", r"no such key\value"] {
            assert_eq!(ask(&format!(r"{windows}\{name}")), Value::Null);
        }
        assert_eq!(ask(r"HKXX\a\b"), Value::Null);
    }

    #[test]
    fn numbers_and_strings_are_read() {
        let key = windows_registry::CURRENT_USER.create(r"Software\yolo tests").unwrap();
        key.set_u32("number", 7).unwrap();
        key.set_string("text", "città").unwrap();
        assert_eq!(ask(r"HKCU\Software\yolo tests\number"), 7);
        assert_eq!(ask(r"HKCU\Software\yolo tests\text"), "città");
        windows_registry::CURRENT_USER.remove_tree(r"Software\yolo tests").unwrap();
        assert_eq!(ask(r"HKCU\Software\yolo tests\text"), Value::Null);
    }
}
