//! The page in a real browser, headless Chromium: it loads without a message on the console, and does not
//! scroll sideways on a phone. With `YOLO_TEST_SCREENSHOTS=FOLDER`, pictures of it are left there to be looked at.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Command;

use support::write_run;
use yolo_report::{RunFiles, page};

/// The browser, if there is one.
fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok())
}

/// Opens a page with these arguments. Returns what the browser prints.
fn open(browser: &str, profile: &Path, arguments: &[&str], page: &Path) -> (String, String) {
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
        ])
        .args(["--enable-logging=stderr", "--allow-file-access-from-files"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn the_page_opens_without_a_message_and_fits_a_phone() {
    let Some(browser) = chromium() else {
        println!("skipped: there is no Chromium to open the report in");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("train/exp");
    write_run(&run, 80, 60);
    let report = folder.path().join("report.html");
    std::fs::write(&report, page(&RunFiles::read(&run).unwrap())).unwrap();
    // A window of headless Chromium is at least 500 pixels wide; a frame is as narrow as a phone.
    let phone = folder.path().join("phone.html");
    let script = "const page = frames[0].document.documentElement; \
                  document.title = 'width ' + page.scrollWidth + ' of ' + page.clientWidth;";
    let frame = format!(
        "<!DOCTYPE html><title>-</title><body style='margin:0'><iframe src='report.html' \
         style='border:0;width:390px;height:9000px' onload=\"{script}\"></iframe>"
    );
    std::fs::write(&phone, frame).unwrap();

    let profile = folder.path().join("profile");
    let (dom, log) = open(browser, &profile, &["--dump-dom"], &phone);
    assert!(dom.contains("<title>width 390 of 390</title>"), "{}\n{log}", &dom[..dom.len().min(300)]);
    let (dom, log) = open(browser, &profile, &["--dump-dom"], &report);
    assert!(dom.contains("<h2>Worst images</h2>"), "the page was not opened:\n{log}");
    let messages: Vec<&str> = log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert!(messages.is_empty(), "{messages:?}");

    if let Some(pictures) = std::env::var_os("YOLO_TEST_SCREENSHOTS") {
        for (name, size, dark, page) in [
            ("wide.png", "1200,6000", false, &report),
            ("dark.png", "1200,6000", true, &report),
            ("phone.png", "500,9000", false, &phone),
        ] {
            let picture = format!("--screenshot={}", Path::new(&pictures).join(name).display());
            let size = format!("--window-size={size}");
            let mut arguments = vec![picture.as_str(), size.as_str()];
            if dark {
                arguments.push("--blink-settings=preferredColorScheme=0");
            }
            open(browser, &profile, &arguments, page);
        }
    }
}
