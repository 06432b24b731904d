//! How WSL reads `.wslconfig` and `wsl.conf`, what it ignores, and that an edit changes nothing
//! else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use yolo_checks::wsl::config::{ConfigFile, Document, EditError, Encoding, Problem, size};

fn config(text: &str) -> Document {
    Document::parse(ConfigFile::WslConfig, text.as_bytes())
}

fn text(document: &Document) -> String {
    String::from_utf8(document.bytes()).unwrap()
}

/// The messages of a file's problems, with their lines.
fn messages(document: &Document) -> Vec<String> {
    document
        .problems()
        .iter()
        .map(|found| match found.line {
            Some(line) => format!("{line}: {}", found.problem),
            None => found.problem.to_string(),
        })
        .collect()
}

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

#[test]
fn quotes_escapes_and_comments_are_removed_from_values() {
    let file = config(concat!(
        "[wsl2]\n",
        "memory=6GB   # of 16\n",
        "  swap\t=  4GB\n",
        "swapFile=F:\\\\swap.vhdx  # on the other drive\n",
        "kernelCommandLine = \" sysctl.vm.swappiness=10 # kept \"\n",
        "processors=1\\\n",
        "2\n",
    ));
    for (key, value) in [
        ("memory", "6GB"),
        ("swap", "4GB"),
        ("swapFile", "F:\\swap.vhdx"),
        ("kernelCommandLine", " sysctl.vm.swappiness=10 # kept "),
        ("processors", "12"),
    ] {
        assert_eq!(file.value("wsl2", key), Some(value), "{key}");
    }
    assert_eq!(messages(&file), [""; 0]);
}

#[test]
fn keys_are_case_insensitive_and_the_first_of_two_applies() {
    let file = config("[WSL2]\nMEMORY=4GB\nmemory=8GB\n[wsl2]\nMemory=16GB\n");
    let setting = file.get("wsl2", "memory").unwrap();
    assert_eq!((setting.value, setting.line), ("4GB", 2));
    assert_eq!(
        messages(&file),
        [
            "3: `memory` is already set on line 2, and WSL uses the first value",
            "5: `Memory` is already set on line 2, and WSL uses the first value",
        ]
    );
}

#[test]
fn a_size_without_a_unit_is_bytes() {
    let file = config("[wsl2]\nmemory=8\nswap=0\n");
    assert_eq!(file.value("wsl2", "memory").and_then(size::parse), Some(8));
    assert_eq!(messages(&file), ["2: `memory=8` means 8 bytes: a unit is missing, as in `memory=8GB`"]);
}

#[test]
fn values_that_wsl_cannot_read_are_reported() {
    let file = config(concat!(
        "[wsl2]\nmemory=8 GB\nswap=8gb\nprocessors=four\nlocalhostForwarding=yes\n",
        "networkingMode=mirror\nkernel=C:\\temp\\new\nswapFile=C:\\Users\\me\\swap.vhdx\nfirewall=True\n",
    ));
    let size = "the value must be a whole number followed by a unit in capitals, without a space, such as 8GB or 512MB";
    assert_eq!(
        messages(&file),
        [
            format!("2: `memory=8 GB` has no effect: {size}"),
            format!("3: `swap=8gb` has no effect: {size}"),
            "4: `processors=four` has no effect: the value must be a whole number".to_owned(),
            "5: `localhostForwarding=yes` has no effect: the value must be true or false".to_owned(),
            "6: `networkingMode=mirror` has no effect: the value must be one of none, nat, bridged, mirrored, \
             virtioproxy, consomme"
                .to_owned(),
            "7: the backslashes in the path of `kernel` must be doubled: WSL reads single ones as control characters"
                .to_owned(),
            "8: WSL ignores the line with `swapFile`: a backslash must be doubled: `\\\\`".to_owned(),
        ]
    );
    assert_eq!(file.value("wsl2", "swapFile"), None);
}

#[test]
fn misplaced_settings_are_reported() {
    let file = config(concat!(
        "swap=2GB\n[experimental]\nmemory=8GB\nnetworkingMode=mirrored\nsparseVhds=true\n",
        "[ws12]\nprocessors=4\nfoo=1\n[automount]\nroot=/\n[wsl2]\nsystemd=true\n",
    ));
    assert_eq!(
        messages(&file),
        [
            "1: `swap` is above the first section, where WSL ignores it: it belongs in [wsl2]",
            "3: WSL ignores `memory` in [experimental]: it belongs in [wsl2]",
            "4: `networkingMode` has moved to [wsl2]; WSL still reads it here",
            "5: WSL has no key `sparseVhds`; did you mean `sparseVhd`?",
            "6: WSL has no section [ws12] and ignores what is in it; did you mean [wsl2]?",
            "7: WSL ignores `processors` in [ws12]: it belongs in [wsl2]",
            "9: WSL ignores [automount] here: it belongs in /etc/wsl.conf",
            "12: WSL ignores systemd here: it belongs in /etc/wsl.conf",
        ]
    );
    // WSL still reads the former section.
    assert_eq!(file.value("wsl2", "networkingMode"), Some("mirrored"));
    assert_eq!(file.value("wsl2", "memory"), None);
}

#[test]
fn a_broken_section_header_is_ignored() {
    for header in ["[wsl2 ]", "[wsl2", "[wsl2] memory=4GB", "[wsl-2]", "wsl2]"] {
        let file = config(&format!("{header}\nmemory=8GB\n"));
        assert_eq!(file.value("wsl2", "memory"), None, "{header}");
        assert!(file.problems().len() >= 2, "{header}: {:?}", file.problems());
    }
    // After a broken header with a leading space, the previous section continues.
    assert_eq!(config("[wsl2]\n[ experimental ]\nmemory=8GB\n").value("wsl2", "memory"), Some("8GB"));
}

#[test]
fn wslconfig_skips_a_broken_line_and_wsl_conf_ends_at_it() {
    let lines = "[boot]\n; systemd below\nsystemd=true\n";
    assert_eq!(Document::parse(ConfigFile::WslConfig, lines.as_bytes()).settings().count(), 1);
    let mut conf = Document::parse(ConfigFile::WslConf, lines.as_bytes());
    assert_eq!(conf.value("boot", "systemd"), None);
    assert_eq!(
        messages(&conf),
        [
            "2: WSL ignores this line: it must begin with a letter, `[` or `#`; it also ignores everything after it"
        ]
    );
    let error = conf.set("boot", "systemd", "false").unwrap_err();
    assert!(matches!(error, EditError::Unread { line: 2, .. }), "{error}");
    assert_eq!(conf.bytes(), lines.as_bytes());
}

#[test]
fn encodings_of_windows_editors_are_read_and_converted_to_utf_8() {
    let content = "[wsl2]\r\nmemory=8GB\r\n";
    let marked = |mark: &[u8], rest: Vec<u8>| [mark, &rest].concat();
    for (encoding, bytes) in [
        (Encoding::Utf8Bom, marked(b"\xEF\xBB\xBF", content.as_bytes().to_vec())),
        (Encoding::Utf16Le, marked(b"\xFF\xFE", utf16(content, u16::to_le_bytes))),
        (Encoding::Utf16Be, marked(b"\xFE\xFF", utf16(content, u16::to_be_bytes))),
        (Encoding::Utf16Le, utf16(content, u16::to_le_bytes)),
        (Encoding::Mixed, marked(b"[wsl2]\r\n", utf16("memory=8GB\r\n", u16::to_le_bytes))),
    ] {
        let mut file = Document::parse(ConfigFile::WslConfig, &bytes);
        assert_eq!(file.encoding(), encoding);
        assert_eq!(file.value("wsl2", "memory"), Some("8GB"), "{encoding}");
        assert_eq!(file.problems()[0].problem, Problem::Encoding(encoding));
        // An edit that changes no value changes no byte.
        file.set("wsl2", "memory", "8GB").unwrap();
        assert_eq!(file.bytes(), bytes, "{encoding}");
        file.set("wsl2", "memory", "6GB").unwrap();
        assert_eq!(text(&file), "[wsl2]\r\nmemory=6GB\r\n", "{encoding}");
        assert_eq!(file.problems(), []);
        let mut file = Document::parse(ConfigFile::WslConfig, &bytes);
        assert!(file.make_plain());
        assert_eq!(text(&file), content, "{encoding}");
    }
}

#[test]
fn an_edit_keeps_bytes_of_an_old_code_page_in_comments() {
    let mut file = Document::parse(ConfigFile::WslConfig, b"# m\xE9moire\r\n[wsl2]\r\nmemory=8GB\r\n");
    file.set("wsl2", "memory", "12GB").unwrap();
    assert_eq!(file.bytes(), b"# m\xE9moire\r\n[wsl2]\r\nmemory=12GB\r\n");
}

#[test]
fn an_edit_changes_only_its_value() {
    let before = concat!(
        "# My settings\r\n\r\n  [wsl2]   # all distributions\r\n",
        "memory  =   4GB\t# half\r\n# swap=1GB\r\nguiApplications=false\r\n\r\n[experimental]\r\nsparseVhd = true",
    );
    let mut file = config(before);
    file.set("wsl2", "memory", "12GB").unwrap();
    assert_eq!(text(&file), before.replace("4GB", "12GB"));
    file.set("wsl2", "swap", "3GB").unwrap();
    file.set("experimental", "autoMemoryReclaim", "gradual").unwrap();
    assert_eq!(
        text(&file),
        concat!(
            "# My settings\r\n\r\n  [wsl2]   # all distributions\r\n",
            "memory  =   12GB\t# half\r\n# swap=1GB\r\nguiApplications=false\r\nswap=3GB\r\n\r\n[experimental]\r\n",
            "sparseVhd = true\r\nautoMemoryReclaim = gradual",
        )
    );
}

#[test]
fn new_files_and_sections_get_the_line_endings_of_their_system() {
    let mut file = Document::new(ConfigFile::WslConfig);
    file.set("wsl2", "memory", "8GB").unwrap();
    file.set("wsl2", "swap", "2GB").unwrap();
    assert_eq!(text(&file), "[wsl2]\r\nmemory=8GB\r\nswap=2GB\r\n");
    let mut file = Document::new(ConfigFile::WslConf);
    file.set("boot", "systemd", "true").unwrap();
    assert_eq!(text(&file), "[boot]\nsystemd=true\n");
    let mut file = config("[experimental]\nsparseVhd=true\n");
    file.set("wsl2", "memory", "8GB").unwrap();
    assert_eq!(text(&file), "[experimental]\nsparseVhd=true\n\n[wsl2]\nmemory=8GB\n");
}

#[test]
fn setting_a_key_repairs_its_broken_line_in_place() {
    let mut file = config("[wsl2]\nswapFile=C:\\Users\\me\\swap.vhdx # mine\nmemory=8GB\n");
    file.set("wsl2", "swapFile", "C:\\Users\\me\\swap.vhdx").unwrap();
    assert_eq!(text(&file), "[wsl2]\nswapFile=C:\\\\Users\\\\me\\\\swap.vhdx # mine\nmemory=8GB\n");
    assert_eq!(file.value("wsl2", "swapFile"), Some("C:\\Users\\me\\swap.vhdx"));
}

#[test]
fn removing_a_key_keeps_its_comment() {
    let mut file = config("[wsl2]\r\nmemory=8GB  # why\r\nswap=1GB\r\nMEMORY=4GB\r\n");
    assert!(file.remove("wsl2", "memory").unwrap());
    assert_eq!(text(&file), "[wsl2]\r\n# why\r\nswap=1GB\r\n");
    assert!(!file.remove("wsl2", "memory").unwrap());
}

#[test]
fn names_and_values_that_wsl_cannot_read_are_rejected() {
    let mut file = config("[wsl2]\n");
    for (section, key, value) in [
        ("wsl2 ", "memory", "8GB"),
        ("wsl2", "2x", "1"),
        ("wsl2", "memory", "8\nGB"),
        ("wsl2", "kernel", "é"),
    ] {
        file.set(section, key, value).unwrap_err();
    }
    assert_eq!(text(&file), "[wsl2]\n");
}

/// Random files, built from pieces that stress the parser.
fn odd_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just("\n"), 3 => Just("\r\n"), 1 => Just("\r"), 1 => Just(" "), 1 => Just("\t"),
        3 => Just("[wsl2]"), 1 => Just("[experimental]"), 1 => Just("[ wsl2 ]"), 1 => Just("[wsl2"), 1 => Just("[x]"),
        4 => Just("memory"), 2 => Just("swap"), 1 => Just("networkingMode"), 1 => Just("foo"),
        5 => Just("="), 3 => Just("8GB"), 1 => Just("8"), 1 => Just("\\"), 1 => Just("\\\\"), 1 => Just("\""),
        1 => Just("#"), 1 => Just(" # why"), 1 => Just("é"), 1 => Just("C:\\x"), 1 => Just("\u{0}"),
        2 => Just("memory=4GB\r\n"), 2 => Just("swap = 1GB # x\n"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// All settings except those of one key.
fn others(document: &Document, key: &str) -> Vec<(String, String, String)> {
    document
        .settings()
        .filter(|setting| !setting.key.eq_ignore_ascii_case(key))
        .map(|setting| (setting.section.to_owned(), setting.key.to_owned(), setting.value.to_owned()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parsing_keeps_all_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for kind in [ConfigFile::WslConfig, ConfigFile::WslConf] {
            let document = Document::parse(kind, &bytes);
            document.problems();
            prop_assert_eq!(document.bytes(), bytes.clone());
        }
    }

    #[test]
    fn a_set_value_is_read_back_and_nothing_else_changes(
        before in odd_text(), value in "[ -~]{0,12}", key in prop_oneof!["memory", "swap", "kernel", "networkingMode"],
    ) {
        let mut file = config(&before);
        let rest = others(&file, &key);
        file.set("wsl2", &key, &value).unwrap();
        prop_assert_eq!(file.value("wsl2", &key), Some(&*value));
        prop_assert_eq!(others(&file, &key), rest);
        // The written file parses to the same value.
        let again = Document::parse(ConfigFile::WslConfig, &file.bytes());
        prop_assert_eq!(again.value("wsl2", &key), Some(&*value));
        // Setting the same value again changes nothing.
        let once = file.bytes();
        file.set("wsl2", &key, &value).unwrap();
        prop_assert_eq!(file.bytes(), once);
    }

    #[test]
    fn a_set_value_leaves_all_other_text(before in odd_text(), value in "[0-9]{1,3}GB") {
        let mut file = config(&before);
        let was = file.text().to_owned();
        file.set("wsl2", "memory", &value).unwrap();
        let now = file.text();
        // One range was replaced; the text before and after it is unchanged.
        let front = was.bytes().zip(now.bytes()).take_while(|(a, b)| a == b).count();
        let back = was.bytes().rev().zip(now.bytes().rev()).take_while(|(a, b)| a == b).count();
        let kept = front.min(was.len()) + back.min(was.len().saturating_sub(front));
        let lost = &was[was.floor_char_boundary(front)..was.ceil_char_boundary(was.len() - (kept - front))];
        prop_assert!(!lost.contains(['\n', '#']) || lost.contains(['\\', '"']), "{lost:?} was lost");
    }

    #[test]
    fn removing_a_key_changes_nothing_else(before in odd_text()) {
        let mut file = config(&before);
        let rest = others(&file, "memory");
        let there = file.get("wsl2", "memory").is_some();
        prop_assert_eq!(file.remove("wsl2", "memory").unwrap(), there);
        prop_assert_eq!(file.get("wsl2", "memory"), None);
        prop_assert_eq!(others(&file, "memory"), rest);
    }
}
