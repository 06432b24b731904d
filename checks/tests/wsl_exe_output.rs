//! Parsing of the output of `wsl.exe` in several languages, encodings and releases.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use yolo_checks::wsl::exe_output::{
    Trouble, Version, code, decode, distributions, status, trouble, versions,
};

const ENGLISH: &str = "WSL version: 2.5.7.0\nKernel version: 6.6.87.1-1\nWSLg version: 1.0.66\nMSRDC version: 1.2.6074\n\
    Direct3D version: 1.611.1-81528511\nDXCore version: 10.0.26100.1-240331-1435.ge-release\nWindows version: 10.0.26100.4061\n";
const ITALIAN: &str = "Versione WSL: 2.5.7.0\nVersione kernel: 6.6.87.1-1\nVersione WSLg: 1.0.66\nVersione MSRDC: 1.2.6074\n\
    Versione Direct3D: 1.611.1-81528511\nVersione DXCore: 10.0.26100.1-240331-1435.ge-release\nVersione di Windows: 10.0.26100.4061\n";
const FRENCH: &str = "Version WSL\u{a0}: 2.5.7.0\nVersion du noyau\u{a0}: 6.6.87.1-1\nVersion Windows\u{a0}: 10.0.26100.4061\n";
const CHINESE: &str = "WSL 版本： 2.5.7.0\n内核版本： 6.6.87.1-1\nWSLg 版本： 1.0.66\nMSRDC 版本： 1.2.6074\n\
    Direct3D 版本： 1.611.1-81528511\nDXCore 版本： 10.0.26100.1-240331-1435.ge-release\nWindows: 10.0.26100.4061\n";

/// As `wsl.exe` writes to a pipe.
fn utf16(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn every_encoding_gives_the_same_text() {
    for text in [ENGLISH, ITALIAN, FRENCH, CHINESE] {
        let marked = |mark: &[u8], rest: Vec<u8>| [mark, &rest].concat();
        let windows = text.replace('\n', "\r\n");
        for bytes in [
            utf16(text),
            marked(b"\xFF\xFE", utf16(text)),
            windows.clone().into_bytes(),
            marked(b"\xEF\xBB\xBF", windows.clone().into_bytes()),
            text.replace('\n', "\r\r\n").into_bytes(),
        ] {
            assert_eq!(decode(&bytes), text);
        }
    }
}

#[test]
fn versions_are_read_in_any_language() {
    for text in [ENGLISH, ITALIAN, FRENCH, CHINESE] {
        let versions = versions(&decode(&utf16(text))).unwrap();
        assert_eq!(versions.wsl, Version([2, 5, 7, 0]));
        assert_eq!(versions.kernel, Some(Version([6, 6, 87, 1])));
        assert_eq!(versions.windows.unwrap().build(), 26100);
    }
}

#[test]
fn indented_and_short_output_is_read_and_other_output_is_not() {
    assert_eq!(
        versions("  WSL version: 1.1.6.0\n  Kernel version: 5.15.90.1\n").unwrap().kernel.unwrap().0[0],
        5
    );
    for other in [
        "",
        "Invalid command line option: --version\nCopyright (c) Microsoft Corporation. All rights reserved.\n",
        "Opzione della riga di comando non valida: --version\nUtilizzo: wsl.exe [Argomento]\n",
        "Windows version: 10.0.19045.1\n",
        "https://aka.ms/wslstore\n",
    ] {
        assert_eq!(versions(other), None, "{other}");
    }
}

#[test]
fn versions_compare_by_number() {
    assert!(Version::parse("2.10.0").unwrap() > Version::parse("2.9.4.1").unwrap());
    assert_eq!(Version::parse("6.6.87.2-1").unwrap().to_string(), "6.6.87.2");
    assert_eq!(Version::parse("5"), None);
}

#[test]
fn status_is_read_in_any_language() {
    for text in [
        "Default Distribution: Ubuntu-24.04\nDefault Version: 2\n",
        "Distribuzione predefinita: Ubuntu-24.04\nVersione predefinita: 2\n",
        "默认分发： Ubuntu-24.04\n默认版本： 2\n",
        "Default Distribution: Ubuntu-24.04\nDefault Version: 2\n\nWindows Subsystem for Linux was last updated on 28/02/2022\n\
         WSL automatic updates are on.\n\nKernel version: 5.10.102.1\n",
    ] {
        let status = status(&decode(&utf16(text)));
        assert_eq!(status.default_distribution.as_deref(), Some("Ubuntu-24.04"), "{text}");
        assert_eq!((status.default_version, status.trouble), (Some(2), None), "{text}");
    }
    let none = status("Default Version: 1\n");
    assert_eq!((none.default_distribution, none.default_version), (None, Some(1)));
}

#[test]
fn status_contains_the_reason_why_wsl_2_cannot_run() {
    let italian = "Versione predefinita: 2\n\
        WSL2 non può essere avviato perché la virtualizzazione non è abilitata in questo computer.\n\
        Per informazioni, visitare https://aka.ms/enablevirtualization\n";
    assert_eq!(status(&decode(&utf16(italian))).trouble, Some(Trouble::VirtualizationOff));
    let help = "Il sottosistema Windows per Linux non è installato. È possibile installarlo eseguendo 'wsl.exe --install'.\n";
    assert_eq!(status(help).default_version, None);
}

#[test]
fn lists_are_read_in_any_language() {
    for text in [
        "  NAME              STATE           VERSION\n* Ubuntu            Running         2\n  docker-desktop    Stopped         2\n  Debian            Stopped         1\n",
        "  NOME              STATO           VERSIONE\n* Ubuntu            In esecuzione   2\n  docker-desktop    Arrestato       2\n  Debian            Arrestato       1\n",
        "  名称                状态              版本\n* Ubuntu            正在运行            2\n  docker-desktop    已停止             2\n  Debian            已停止             1\n",
    ] {
        let list = distributions(&decode(&utf16(text)));
        let seen: Vec<_> =
            list.iter().map(|one| (one.name.as_str(), one.default, one.version, one.is_usable())).collect();
        assert_eq!(
            seen,
            [("Ubuntu", true, 2, true), ("docker-desktop", false, 2, false), ("Debian", false, 1, true)],
            "{text}"
        );
    }
    assert_eq!(
        distributions("  NOME      STATO           VERSIONE\n* Ubuntu    In esecuzione   2\n")[0].state,
        "In esecuzione"
    );
    assert_eq!(
        distributions(
            "Windows Subsystem for Linux has no installed distributions.\nhttps://aka.ms/wslstore\n"
        ),
        []
    );
}

#[test]
fn failures_are_recognized_by_their_code() {
    for (text, known, shown) in [
        (
            "Installazione non riuscita.\nCodice errore: Wsl/Service/CreateInstance/CreateVm/HCS/HCS_E_HYPERV_NOT_INSTALLED\n",
            Some(Trouble::VirtualizationOff),
            Some("Wsl/Service/CreateInstance/CreateVm/HCS/HCS_E_HYPERV_NOT_INSTALLED"),
        ),
        (
            "WslRegisterDistribution failed with error: 0x8007019e\n",
            Some(Trouble::FeatureOff),
            Some("0x8007019e"),
        ),
        ("Error: 0x800701bc WSL 2 requires an update\n", Some(Trouble::KernelMissing), Some("0x800701bc")),
        (
            "Sie können es installieren, indem Sie „wsl.exe --install“ ausführen.\n",
            Some(Trouble::NotInstalled),
            None,
        ),
        ("Use 'wsl.exe --install <Distro>' to install a distribution.\n", None, None),
        (
            "Codice errore: Wsl/WSL_E_WSL_OPTIONAL_COMPONENT_REQUIRED",
            Some(Trouble::FeatureOff),
            Some("Wsl/WSL_E_WSL_OPTIONAL_COMPONENT_REQUIRED"),
        ),
        (
            "Error code: Wsl/InstallDistro/WININET_E_NAME_NOT_RESOLVED",
            Some(Trouble::Network),
            Some("Wsl/InstallDistro/WININET_E_NAME_NOT_RESOLVED"),
        ),
        ("Codice errore: Wsl/Service/E_UNEXPECTED", None, Some("Wsl/Service/E_UNEXPECTED")),
        ("Fatto.", None, None),
    ] {
        assert_eq!((trouble(text), code(text)), (known, shown), "{text}");
    }
}

proptest! {
    #[test]
    fn any_output_is_accepted(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in ".{0,120}") {
        for answer in [decode(&bytes), text] {
            versions(&answer);
            status(&answer);
            distributions(&answer);
            trouble(&answer);
            code(&answer);
        }
    }
}
