//! The page of a run: that it is valid HTML, that names stay text, and what a reader finds in it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use scraper::{Html, Selector};
use support::{HOSTILE, write_run};
use yolo_plan::report::{DetectionBox, Verdict};
use yolo_report::{RunFiles, page};

fn page_of(classes: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("train/exp");
    write_run(&run, classes, 60);
    page(&RunFiles::read(&run).unwrap())
}

fn texts(html: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    html.select(&selector).map(|element| element.text().collect::<String>()).collect()
}

fn count(html: &Html, selector: &str) -> usize {
    html.select(&Selector::parse(selector).unwrap()).count()
}

#[test]
fn a_parser_of_html_finds_no_error() {
    for classes in [1, 3, 80] {
        let html = Html::parse_document(&page_of(classes));
        assert!(html.errors.is_empty(), "{classes} classes: {:?}", html.errors);
    }
}

#[test]
fn nothing_is_fetched_and_nothing_runs() {
    let text = page_of(3);
    let html = Html::parse_document(&text);
    assert_eq!(count(&html, "script, iframe, object, link:not([href='data:,']), img"), 0);
    for attribute in ["href", "src"] {
        for element in html.select(&Selector::parse(&format!("[{attribute}]")).unwrap()) {
            let value = element.value().attr(attribute).unwrap();
            assert!(value.starts_with('#') || value.starts_with("data:"), "{attribute}={value}");
        }
    }
    assert!(!text.contains("url(") && !text.contains("@import"));
}

#[test]
fn names_of_users_stay_text() {
    let html = Html::parse_document(&page_of(3));
    assert_eq!(count(&html, "script, b b, i i, h1 i, td i:not([style])"), 0);
    assert!(texts(&html, "tbody th").contains(&HOSTILE.to_owned()));
    assert!(texts(&html, "td").contains(&"<i>birds</i>.yaml".to_owned()));
    assert!(texts(&html, "small").contains(&"/data/<b>birds</b>/00.jpg".to_owned()));
}

#[test]
fn a_reader_finds_every_section_from_the_contents() {
    let html = Html::parse_document(&page_of(3));
    let sections = [
        "Summary",
        "Settings",
        "Data set",
        "Training",
        "Results of best.pt",
        "Confusion matrix",
        "Worst images",
        "Time and speed",
        "Machine and versions",
        "Repeat this run",
    ];
    assert_eq!(texts(&html, "h2"), sections);
    assert_eq!(texts(&html, "nav a"), sections);
    for link in html.select(&Selector::parse("nav a").unwrap()) {
        let id = link.value().attr("href").unwrap().strip_prefix('#').unwrap();
        assert_eq!(count(&html, &format!("section[id='{id}']")), 1, "{id}");
    }
    assert_eq!(texts(&html, "h1"), ["train/exp"]);
}

#[test]
fn settings_that_differ_come_first() {
    let html = Html::parse_document(&page_of(3));
    let first = Selector::parse("#settings table").unwrap();
    let table = html.select(&first).next().unwrap();
    let rows: Vec<String> = table
        .select(&Selector::parse("tbody tr").unwrap())
        .map(|row| row.text().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(rows, ["data <i>birds</i>.yaml coco128", "epochs 60 100", "cos_lr yes –", "lr0 0.02 0.01"]);
}

#[test]
fn pictures_tables_and_charts_can_be_read_without_eyes_and_without_color() {
    let html = Html::parse_document(&page_of(80));
    assert_eq!(
        count(&html, "svg:not([aria-hidden]):not([role='img'][aria-label])"),
        0,
        "a picture has no words"
    );
    assert_eq!(count(&html, "table:not(:has(caption))"), 0, "a table has no caption");
    assert_eq!(count(&html, "thead th:not([scope]), tbody tr:not(:has(th[scope='row']))"), 0);
    // Colored cells have numbers.
    let colored = Selector::parse(".matrix td[class]").unwrap();
    assert!(html.select(&colored).all(|cell| !cell.text().collect::<String>().trim().is_empty()));
    assert_eq!(count(&html, ".matrix tbody tr"), 81);
    assert_eq!(count(&html, ".pair"), 20);
}

#[test]
fn boxes_have_numbers_and_a_list_says_what_each_is() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), 3, 2);
    let mut report = support::report(3);
    let image = &mut report.validations[0].worst[0];
    let like = image.detections[0].clone();
    // On the found label of class 1, the third class; and two false ones more.
    image.detections.push(DetectionBox { class: 2, confidence: 0.5, verdict: Verdict::Confused, ..like });
    for confidence in [0.3, 0.8] {
        let one = DetectionBox { confidence, ..image.detections[1].clone() };
        image.detections.push(one);
    }
    report.write(folder.path()).unwrap();
    let text = page(&RunFiles::read(folder.path()).unwrap());
    let html = Html::parse_document(&text);
    let pair = |selector: &str| texts(&html, &format!(".pair:first-child {selector}"));
    assert_eq!(pair("li")[..2], [format!("missed: {HOSTILE} 1"), "found: class 1 2".to_owned()]);
    assert_eq!(
        pair("li")[2..].iter().map(|line| line.replace('\u{a0}', " ")).collect::<Vec<_>>(),
        [
            format!("false: {HOSTILE} 1 (0.80), 2 (0.40), 3 (0.30)"),
            "wrong class: class 2 4 (0.50, labeled class 1)".to_owned(),
            "right: class 1 5".to_owned(),
        ]
    );
    assert_eq!(pair("svg text"), ["1", "2", "1", "2", "3", "4", "5"]);
    assert!(
        pair("figcaption")[0]
            .contains(&format!("missed: 1 {HOSTILE}; false: 3 {HOSTILE}; wrong class: 1 class 2"))
    );
}

#[test]
fn lines_of_commands_do_not_break_within_an_option() {
    let html = Html::parse_document(&page_of(1));
    assert_eq!(texts(&html, "#repeat pre"), ["cd /home/mara && yolo train --data 'b&w.yaml'"]);
    assert_eq!(texts(&html, "#repeat pre .nb"), ["--data"]);
}

#[test]
fn the_page_of_80_classes_is_small() {
    let bytes = page_of(80).len();
    // With twenty pictures of at most 100 kB, in base64, it is below 5 MB.
    assert!(bytes < 2_000_000, "{bytes} bytes, without the pictures");
}

#[test]
fn a_run_that_ended_before_its_first_epoch_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), 3, 0);
    let mut report = support::report(3);
    report.validations.clear();
    report.run.as_mut().unwrap().end = yolo_plan::report::End::Interrupted;
    report.write(folder.path()).unwrap();
    let html = Html::parse_document(&page(&RunFiles::read(folder.path()).unwrap()));
    assert!(html.errors.is_empty());
    assert!(
        texts(&html, "#summary p")
            .contains(&"The run was interrupted. This report shows what was there.".to_owned())
    );
    assert!(!texts(&html, "h2").contains(&"Training".to_owned()));
}

#[test]
fn folders_that_are_no_run_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &std::path::Path| {
        let text = RunFiles::read(path).unwrap_err().to_string();
        text.replace(&path.display().to_string(), "DIR")
    };
    assert_eq!(message(folder.path()), "DIR is no folder of a training run: it has no results.csv");
    assert_eq!(message(&folder.path().join("gone")), "DIR does not exist");
    std::fs::write(folder.path().join("report.json"), "{").unwrap();
    assert!(message(folder.path()).starts_with("cannot read the report.json of DIR: EOF"));
}
