//! `yolo setup` as a user types it, against a server of the test's own: plans, weights, data sets, a
//! CUDA variant of libtorch, what is listed and removed, and what the messages say when it is refused.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use yolo_data::weights::{DType, TensorData, Value, write_pt};
use zip::write::SimpleFileOptions;

#[allow(dead_code, reason = "each test program uses its own part of the server")]
#[path = "support/rude_server.rs"]
mod rude_server;
#[path = "support/user.rs"]
mod user;
#[cfg(target_os = "linux")]
#[path = "support/wheels.rs"]
mod wheels;

use rude_server::{Manner, RudeServer};
use user::{Answer, User, square};

/// A user with an empty home, and a mirror.
struct Machine {
    user: User,
    server: RudeServer,
}

impl Machine {
    fn with(files: HashMap<String, Vec<u8>>) -> Self {
        Self { user: User::new(), server: RudeServer::start(files) }
    }

    fn home(&self) -> PathBuf {
        self.user.path().join("home")
    }

    fn command(&self, words: &str) -> Command {
        let mut command = self.user.command(words);
        command
            .env("YOLO_HOME", self.home())
            .env("YOLO_MIRROR", self.server.url(""))
            .env_remove("LIBTORCH")
            .env_remove("YOLO_OFFLINE");
        // The trainer itself is not what these tests are about.
        command.env("YOLO_TRAINER", std::env::current_exe().unwrap()).stdin(Stdio::null());
        command
    }

    fn types(&self, words: &str) -> Answer {
        Answer::from(self.command(words).output().unwrap())
    }

    fn json(&self, words: &str) -> serde_json::Value {
        serde_json::from_str(&self.types(words).succeeded().stdout).unwrap()
    }

    /// Everything below the home, without locks.
    fn installed(&self) -> Vec<String> {
        fn walk(folder: &std::path::Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    walk(&entry.path(), found);
                } else if !entry.file_name().to_string_lossy().starts_with(".lock") {
                    found.push(entry.path().display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.home(), &mut found);
        found
    }
}

fn zip(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A data set in the form of YOLOv5: four images to train and two to validate.
fn squares(root: &str) -> Vec<(String, Vec<u8>)> {
    let mut members = Vec::new();
    for (split, count) in [("train", 4), ("val", 2)] {
        for index in 0..count {
            let (image, label) = square(index, split == "val");
            members.push((format!("{root}images/{split}/{index}.bmp"), image));
            members.push((format!("{root}labels/{split}/{index}.txt"), label.into_bytes()));
        }
    }
    members
}

fn coco8() -> Machine {
    Machine::with(HashMap::from([("/coco8.zip".to_owned(), zip(&squares("coco8/")))]))
}

#[test]
fn a_known_data_set_is_fetched_looked_through_and_there_the_next_time() {
    let machine = coco8();
    let first = machine.types("setup --data coco8").succeeded();
    for words in ["train: 4 images, 4 boxes", "val: 2 images, 2 boxes", "2 of 80 classes", "person 3"] {
        assert!(first.stderr.contains(words), "{words} is not in:\n{}", first.stderr);
    }
    let yaml = fs::read_to_string(machine.home().join("data/datasets/coco8/coco8.yaml")).unwrap();
    assert!(yaml.contains("79: toothbrush"), "{yaml}");
    let asked = machine.server.asked().len();
    let began = Instant::now();
    let second = machine.types("setup --data coco8 --offline").succeeded();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(second.stderr.contains("train: 4 images"), "{}", second.stderr);
    assert_eq!(machine.server.asked().len(), asked, "the second run asked the server");
}

#[test]
fn a_dry_run_says_everything_and_changes_nothing() {
    let machine = coco8();
    let plan = machine.types("setup --data coco8 --dry-run").succeeded();
    for words in ["fetch   data set coco8", "to fetch", "on the disk", "the disk of", "free", "coco8.zip"] {
        assert!(plan.stdout.contains(words), "{words} is not in:\n{}", plan.stdout);
    }
    assert_eq!(machine.installed(), Vec::<String>::new());
    let plan = machine.json("setup --data coco8 --dry-run --json");
    let archive = zip(&squares("coco8/")).len();
    assert_eq!(plan["steps"][0]["state"], "fetch");
    assert_eq!(plan["steps"][0]["transfer"], archive);
    assert!(plan["steps"][0]["size"].as_u64().unwrap() > 6 * 64 * 64 * 3);
    assert!(plan["disks"][0]["free"].as_u64().unwrap() > 0 && plan.get("done").is_none());
}

/// An empty Debian has no certificates.
#[cfg(target_os = "linux")]
#[test]
fn without_certificates_a_mirror_by_http_serves_and_https_is_told_what_it_lacks() {
    let machine = coco8();
    let types = |words: &str| {
        let mut command = machine.command(words);
        command.env("SSL_CERT_FILE", "/nothing").env("SSL_CERT_DIR", "/nothing");
        Answer::from(command.output().unwrap())
    };
    types("setup --data coco8").succeeded();
    types("setup --weights https://host.invalid/a.pt").refused(1, &["certificates", "ca-certificates"]);
}

#[test]
fn what_was_done_is_told_as_json() {
    let machine = coco8();
    let report = machine.json("setup --data coco8 shapes --json");
    assert_eq!(report["done"][0]["data"]["summary"]["splits"][0]["images"], 4);
    assert_eq!(report["done"][1]["data"]["name"], "shapes");
}

#[test]
fn what_is_installed_is_listed_and_removed() {
    let machine = coco8();
    machine.types("setup --data coco8").succeeded();
    let list = machine.types("setup --list").succeeded().stdout;
    assert!(list.contains("data") && list.contains("coco8") && list.contains("in all"), "{list}");
    assert_eq!(machine.json("setup --list --json")[0]["name"], "coco8");
    machine.types("setup --remove nothing").refused(1, &["nothing is not installed", "coco8", "--list"]);
    machine.types("setup --remove coco8 nothing").refused(1, &["nothing is not installed"]);
    let gone = machine.types("setup --remove coco8").succeeded();
    assert!(gone.stderr.contains("removed data coco8"), "{}", gone.stderr);
    machine.types("setup --remove coco8").refused(1, &["coco8 is not installed; nothing is"]);
    // There may be nothing of it: what is meant is that nothing shall be.
    machine.types("setup --remove unfinished").succeeded();
    assert_eq!(machine.installed(), Vec::<String>::new());
}

#[test]
fn a_yaml_with_an_address_is_followed_for_zip_and_tar_gz() {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, bytes) in squares("") {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    let files = HashMap::from([
        ("/boxes.zip".to_owned(), zip(&squares("some-folder/"))),
        ("/boxes.tar.gz".to_owned(), tar.into_inner().unwrap().finish().unwrap()),
    ]);
    let machine = Machine::with(files);
    for (name, file) in [("one", "boxes.zip"), ("two", "boxes.tar.gz")] {
        let yaml = format!(
            "path: ../datasets/{name}\ntrain: images/train\nval: images/val\nnames: [red, blue]\ndownload: {}\n",
            machine.server.url(&format!("/{file}"))
        );
        fs::write(machine.user.path().join(format!("{name}.yaml")), yaml).unwrap();
        let answer = machine.types(&format!("setup --data {name}.yaml")).succeeded();
        assert!(answer.stderr.contains("train: 4 images, 4 boxes"), "{}", answer.stderr);
        assert!(machine.home().join(format!("data/datasets/{name}/images/val/1.bmp")).is_file());
    }
}

#[test]
fn an_archive_of_something_else_is_refused_and_nothing_is_installed() {
    let machine = Machine::with(HashMap::from([("/coco8.zip".to_owned(), zip(&squares("pictures/of/")))]));
    // The yaml of a known set is built in, so that the mirror's file is at fault.
    machine.types("setup --data coco8").refused(
        1,
        &[
            &format!("{}: not the archive of coco8", machine.server.url("/coco8.zip")),
            "images/train, images/val",
            "pictures",
            "YOLO_MIRROR",
        ],
    );
    assert_eq!(machine.installed(), Vec::<String>::new());
}

impl Machine {
    /// Writes a yaml of a set of two classes into the folder where the user is.
    fn yaml(&self, name: &str, path: &str, download: &str) {
        let yaml = format!(
            "path: {path}\ntrain: images/train\nval: images/val\nnames: [red, blue]\ndownload: {download}\n"
        );
        fs::write(self.user.path().join(name), yaml).unwrap();
    }

    fn data_sets(&self) -> PathBuf {
        self.home().join("data/datasets")
    }
}

#[test]
fn only_what_is_missing_is_named_and_once() {
    let train_only: Vec<_> = squares("").into_iter().filter(|(name, _)| name.contains("train")).collect();
    let machine = Machine::with(HashMap::from([("/ds.zip".to_owned(), zip(&train_only))]));
    machine.yaml("ds.yaml", "ds", &machine.server.url("/ds.zip"));
    let answer = machine.types("setup --data ds.yaml");
    answer.refused(1, &["hold no images/val: they hold images, labels"]);
    let both = "path: ds\ntrain: pictures\nval: pictures\nnames: [red, blue]\ndownload: ";
    fs::write(machine.user.path().join("both.yaml"), format!("{both}{}", machine.server.url("/ds.zip")))
        .unwrap();
    machine.types("setup --data both.yaml").refused(1, &["hold no pictures: they hold"]);
}

#[test]
fn two_data_sets_for_one_folder_are_refused_and_neither_is_touched() {
    let other: Vec<_> = squares("").into_iter().filter(|(name, _)| !name.contains("train/3")).collect();
    let files = [("/one.zip".to_owned(), zip(&squares(""))), ("/other.zip".to_owned(), zip(&other))];
    let machine = Machine::with(HashMap::from(files));
    let (one, other) = (machine.server.url("/one.zip"), machine.server.url("/other.zip"));
    machine.yaml("one.yaml", "ds", &one);
    machine.yaml("other.yaml", "ds", &other);
    let words = ["ds is for one data set only", one.as_str(), other.as_str(), "another path:"];
    machine.types("setup --data one.yaml other.yaml").refused(1, &words);
    assert_eq!(machine.installed(), Vec::<String>::new());
    machine.types("setup --data one.yaml").succeeded();
    let before = machine.installed();
    machine.types("setup --data other.yaml").refused(1, &words);
    assert_eq!(machine.installed(), before);
    machine.types("setup --data one.yaml --offline").succeeded();
    // The same word twice is one data set.
    assert_eq!(machine.json("setup --data one.yaml one.yaml --json")["done"].as_array().unwrap().len(), 1);
}

#[test]
fn a_known_set_does_not_replace_one_of_a_yaml() {
    let machine = coco8();
    machine.yaml("mine.yaml", "coco8", &machine.server.url("/coco8.zip"));
    machine.types("setup --data mine.yaml").succeeded();
    machine.types("setup --data coco8").refused(1, &["coco8 is for one data set only"]);
}

#[test]
fn a_data_set_that_lost_files_is_fetched_again() {
    let machine = coco8();
    machine.types("setup --data coco8").succeeded();
    let root = machine.data_sets().join("coco8");
    for lost in ["labels", "images/train/2.bmp"] {
        let lost = root.join(lost);
        if lost.is_dir() {
            fs::remove_dir_all(&lost).unwrap()
        } else {
            fs::remove_file(&lost).unwrap()
        }
        let offline = machine.types("setup --data coco8 --offline");
        // Without one label nothing can be learnt; without one image the others can.
        let expected = if lost.ends_with("labels") { 1 } else { 0 };
        assert_eq!(offline.code, Some(expected), "{}", offline.stderr);
        assert!(offline.stderr.contains("files of coco8 are missing"), "{}", offline.stderr);
        assert!(!offline.stderr.contains("train: 4 images, 4 boxes"), "{}", offline.stderr);
        let plan = machine.types("setup --data coco8 --dry-run").succeeded();
        assert!(plan.stdout.contains("of an earlier fetch are missing"), "{}", plan.stdout);
        let again = machine.types("setup --data coco8").succeeded();
        assert!(again.stderr.contains("train: 4 images, 4 boxes"), "{}", again.stderr);
        assert!(lost.exists());
    }
}

#[test]
fn what_a_user_changed_in_a_data_set_is_counted_anew_and_never_replaced() {
    let machine = coco8();
    machine.types("setup --data coco8").succeeded();
    let root = machine.data_sets().join("coco8");
    fs::write(root.join("labels/train/0.txt"), "").unwrap();
    fs::write(root.join("labels/train.cache"), "what a trainer keeps").unwrap();
    let asked = machine.server.asked().len();
    let answer = machine.types("setup --data coco8").succeeded();
    assert!(answer.stderr.contains("train: 4 images, 3 boxes, 1 without"), "{}", answer.stderr);
    assert_eq!(machine.server.asked().len(), asked, "nothing is missing, so that nothing is fetched");
    fs::write(
        root.join("labels/train/1.txt"),
        "0 0.5 0.5 0.25 0.25\n0 0.5 0.5 0.125 0.125\n1 0.5 0.5 0.2 0.2\n",
    )
    .unwrap();
    fs::remove_file(root.join("images/val/0.bmp")).unwrap();
    machine.types("setup --data coco8").refused(1, &["holds files that setup did not put there"]);
    assert!(fs::read_to_string(root.join("labels/train/1.txt")).unwrap().contains("0.125"));
}

#[test]
fn a_file_in_the_place_of_a_data_set_is_not_replaced() {
    let machine = coco8();
    fs::create_dir_all(machine.data_sets()).unwrap();
    fs::write(machine.data_sets().join("coco8"), "precious").unwrap();
    machine.types("setup --data coco8").refused(1, &["coco8 is a file that setup did not put there"]);
    assert_eq!(fs::read_to_string(machine.data_sets().join("coco8")).unwrap(), "precious");
}

#[test]
fn an_archive_of_this_machine_is_unpacked_and_stays() {
    let machine = coco8();
    let archive = machine.user.path().join("my sets/ds.zip");
    fs::create_dir_all(archive.parent().unwrap()).unwrap();
    fs::write(&archive, zip(&squares("ds/"))).unwrap();
    machine.yaml("one.yaml", "one", "my sets/ds.zip");
    machine.yaml("two.yaml", "two", &archive.display().to_string());
    machine.types("setup --data one.yaml two.yaml --offline").succeeded();
    assert!(archive.is_file() && machine.data_sets().join("two/images/val/1.bmp").is_file());
    machine.yaml("three.yaml", "three", "nothing.zip");
    machine.types("setup --data three.yaml").refused(1, &["nothing.zip", "cannot open it"]);
}

#[test]
fn an_address_that_is_not_fetched_is_named_by_its_kind() {
    let machine = coco8();
    for (download, words) in [
        ("ftp://joe:secret@h/x.zip", ["an address of the kind ftp://", "http:// and https://"]),
        ("https://h.invalid/my ds.zip", ["an address with a space in it", "%20"]),
        ("scripts/get.sh", ["is a script, which is not run", "it is scripts/get.sh"]),
        ("curl -L https://h.invalid/x.zip -o x.zip", ["is a shell command", "would have downloaded"]),
        ("7", ["download is 7, not an address", "https://"]),
    ] {
        machine.yaml("odd.yaml", "odd", download);
        let answer = machine.types("setup --data odd.yaml").refused(1, &words);
        assert!(!answer.stderr.contains("secret"), "{}", answer.stderr);
    }
}

#[test]
fn a_download_that_is_code_is_refused_with_what_it_would_have_done() {
    let machine = coco8();
    let script = "path: x\ntrain: t\nval: v\nnames: [a]\ndownload: |\n  from urllib import request\n  request.urlretrieve('https://h.example/x.zip')\n";
    fs::write(machine.user.path().join("script.yaml"), script).unwrap();
    machine
        .types("setup --data script.yaml")
        .refused(1, &["script.yaml", "Python script", "would have downloaded https://h.example/x.zip"]);
    let bash = "path: x\ntrain: t\nval: v\nnames: [a]\ndownload: bash data/scripts/get.sh\n";
    fs::write(machine.user.path().join("bash.yaml"), bash).unwrap();
    machine.types("setup --data bash.yaml").refused(1, &["shell command", "bash data/scripts/get.sh"]);
}

#[test]
fn images_and_labels_that_are_wrong_are_named() {
    let mut members = squares("coco8/");
    members[0].1 = b"this is text".to_vec();
    members[3].1 = b"0 0.5 0.5 1.5 0.2\n".to_vec();
    if cfg!(unix) {
        members.push(("coco8/images/train/x\nERROR: y.bmp".to_owned(), b"no image".to_vec()));
    }
    let machine = Machine::with(HashMap::from([("/coco8.zip".to_owned(), zip(&members))]));
    let answer = machine.types("setup --data coco8").succeeded();
    let corrupt = if cfg!(unix) { "3 corrupt" } else { "2 corrupt" };
    for words in [corrupt, "0.bmp", "1.txt"] {
        assert!(answer.stderr.contains(words), "{words} is not in:\n{}", answer.stderr);
    }
    assert!(!answer.stderr.contains("\nERROR:"), "a name forged a line:\n{}", answer.stderr);
}

#[test]
fn voc_becomes_images_and_labels() {
    let mut archives: HashMap<String, Vec<(String, Vec<u8>)>> = HashMap::new();
    for (archive, year, sets) in [
        ("/VOCtrainval_06-Nov-2007.zip", "2007", &["train", "val"][..]),
        ("/VOCtest_06-Nov-2007.zip", "2007", &["test"]),
        ("/VOCtrainval_11-May-2012.zip", "2012", &["train", "val"]),
    ] {
        let members = archives.entry(archive.to_owned()).or_default();
        for set in sets {
            let name = format!("{year}_{set}");
            let (image, _) = square(3, false);
            let xml = "<annotation><size><width>64</width><height>64</height></size><object><name>cat</name>\
                       <difficult>0</difficult><bndbox><xmin>9</xmin><ymin>9</ymin><xmax>41</xmax><ymax>41</ymax>\
                       </bndbox></object></annotation>";
            let voc = format!("VOCdevkit/VOC{year}");
            members.push((format!("{voc}/ImageSets/Main/{set}.txt"), format!("{name}\n").into_bytes()));
            members.push((format!("{voc}/Annotations/{name}.xml"), xml.as_bytes().to_vec()));
            members.push((format!("{voc}/JPEGImages/{name}.jpg"), image));
        }
    }
    // One annotation is damaged, and one object is of a class that VOC does not have.
    let trainval = archives.get_mut("/VOCtrainval_06-Nov-2007.zip").unwrap();
    let voc = "VOCdevkit/VOC2007";
    trainval.push((format!("{voc}/JPEGImages/odd.jpg"), square(4, false).0));
    trainval.push((format!("{voc}/Annotations/odd.xml"), b"<annotation><size>".to_vec()));
    trainval[0].1.extend(b"odd\n");
    let unicorn = "<object><name>unicorn</name></object></annotation>";
    let xml = String::from_utf8(trainval[1].1.clone()).unwrap().replace("</annotation>", unicorn);
    trainval[1].1 = xml.into_bytes();
    let files = archives.into_iter().map(|(path, members)| (path, zip(&members))).collect();
    let machine = Machine::with(files);
    let answer = machine.types("setup --data VOC").succeeded();
    assert!(
        answer.stderr.contains("train: 4 images, 4 boxes, 0 without an object, 1 corrupt"),
        "{}",
        answer.stderr
    );
    for words in
        ["VOC2007/Annotations/odd.xml: image left out: it is no XML", "1 objects left out", "unicorn 1"]
    {
        assert!(answer.stderr.contains(words), "{words} is not in:\n{}", answer.stderr);
    }
    assert!(
        answer.stderr.contains("val: 1 images, 1 boxes") && answer.stderr.contains("cat 5"),
        "{}",
        answer.stderr
    );
    let label = machine.home().join("data/datasets/VOC/labels/test2007/2007_test.txt");
    assert_eq!(fs::read_to_string(label).unwrap(), "7 0.375 0.375 0.5 0.5\n");
}

/// A checkpoint with one small tensor.
fn weights() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.pt");
    let tensor = TensorData { dtype: DType::F32, shape: vec![2, 3], bytes: vec![0; 24] };
    let state = Value::Dict(vec![(Value::Str("model.0.weight".into()), Value::Tensor(tensor))]);
    write_pt(&path, &Value::Dict(vec![(Value::Str("model".into()), state)])).unwrap();
    fs::read(path).unwrap()
}

/// Weights that differ from [`weights`] in the value of their first byte.
fn other_weights() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.pt");
    let mut bytes = vec![0; 24];
    bytes[0] = 1;
    let tensor = TensorData { dtype: DType::F32, shape: vec![2, 3], bytes };
    let state = Value::Dict(vec![(Value::Str("model.0.weight".into()), Value::Tensor(tensor))]);
    write_pt(&path, &Value::Dict(vec![(Value::Str("model".into()), state)])).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn other_weights_of_the_same_name_are_not_replaced() {
    let files = HashMap::from([
        ("/one/best.pt".to_owned(), weights()),
        ("/two/best.pt".to_owned(), other_weights()),
        ("/one/yolov5n.pt".to_owned(), weights()),
    ]);
    let machine = Machine::with(files);
    let (one, two) = (machine.server.url("/one/best.pt"), machine.server.url("/two/best.pt"));
    machine
        .types(&format!("setup --weights {one} {two}"))
        .refused(1, &["holds other weights", "/one/best.pt"]);
    assert_eq!(fs::read(machine.home().join("data/weights/best.pt")).unwrap(), weights());
    // The same bytes from elsewhere are the same weights.
    fs::write(machine.user.path().join("best.pt"), weights()).unwrap();
    machine.types("setup --weights best.pt").succeeded();
    // A published name means the published file.
    machine.types(&format!("setup --weights {}", machine.server.url("/one/yolov5n.pt"))).succeeded();
    machine.types("setup --weights yolov5n").refused(1, &["holds other weights", "yolo setup --remove"]);
    machine.types("setup --remove yolov5n").succeeded();
    // Nor is a file replaced that somebody has put there by hand.
    fs::write(machine.home().join("data/weights/mine.pt"), "precious").unwrap();
    fs::write(machine.user.path().join("mine.pt"), weights()).unwrap();
    machine.types("setup --weights mine.pt").refused(1, &["mine.pt", "was not put there by setup"]);
    assert_eq!(fs::read(machine.home().join("data/weights/mine.pt")).unwrap(), b"precious");
}

#[test]
fn a_mirror_or_a_home_that_cannot_be_is_named() {
    let machine = coco8();
    for mirror in ["/no/such/folder", "ftp://host/x", "somewhere"] {
        let mut command = machine.command("setup --data coco8");
        let answer = Answer::from(command.env("YOLO_MIRROR", mirror).output().unwrap());
        answer.refused(1, &["YOLO_MIRROR is", mirror]);
    }
    let file = machine.user.path().join("a file");
    fs::write(&file, "").unwrap();
    for words in ["setup --list", "setup --data coco8"] {
        let mut command = machine.command(words);
        let answer = Answer::from(command.env("YOLO_HOME", &file).output().unwrap());
        answer.refused(1, &["YOLO_HOME is", "a file", "no folder"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_an_error() {
    let machine = coco8();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = machine.command("setup --data coco8 --dry-run --json");
    let answer = Answer::from(command.stdout(full).output().unwrap());
    answer.refused(1, &["cannot be written to stdout"]);
}

#[test]
fn words_that_can_be_no_weights_are_refused_before_a_plan() {
    let machine = Machine::with(HashMap::new());
    fs::create_dir(machine.user.path().join("folder")).unwrap();
    let cases = [
        ("folder", "is a folder"),
        ("nowhere.pt", "is not there"),
        ("/", "names no file"),
        ("ftp://host.example/best.pt", "is not http or https"),
        ("https://host.example/", "names no file"),
        #[cfg(unix)]
        ("/dev/zero", "is no file but a device"),
    ];
    for (word, why) in cases {
        let answer = machine.types(&format!("setup --dry-run --weights {word}"));
        answer.refused(1, &[why]);
    }
}

#[test]
fn weights_of_an_address_or_path_are_opened_and_counted() {
    let machine = Machine::with(HashMap::from([("/best.pt".to_owned(), weights())]));
    let address = machine.server.url("/best.pt");
    let answer = machine.types(&format!("setup --weights {address}")).succeeded();
    assert!(answer.stderr.contains("6 parameters"), "{}", answer.stderr);
    assert!(machine.home().join("data/weights/best.pt").is_file());
    machine.types(&format!("setup --weights {address} --offline")).succeeded();
    fs::write(machine.user.path().join("mine.pt"), weights()).unwrap();
    machine.types("setup --weights mine.pt").succeeded();
    let list = machine.types("setup --list").succeeded().stdout;
    assert!(list.contains("best.pt") && list.contains("mine.pt"), "{list}");
    machine.types("setup --remove best").succeeded();
    assert!(!machine.home().join("data/weights/best.pt").exists());
}

#[test]
fn a_file_that_is_not_the_named_model_is_never_put_in_place() {
    let page = b"<!DOCTYPE html><html>Please log in</html>".to_vec();
    let files = HashMap::from([("/yolov5s.pt".to_owned(), weights()), ("/yolov5m.pt".to_owned(), page)]);
    let machine = Machine::with(files);
    let answer = machine.types("setup --weights yolov5s.pt");
    answer.refused(1, &["yolov5s.pt cannot be fetched", "it is not yolov5s: it has 6 parameters"]);
    machine.types("setup --weights yolov5m").refused(1, &["web page"]);
    machine.types("setup --weights nothing.pt").refused(1, &["nothing.pt", "is not there"]);
    assert!(!machine.home().join("data/weights/yolov5s.pt").exists());
}

#[test]
fn a_training_run_says_what_it_lacks_when_it_may_not_fetch() {
    let machine = coco8();
    machine.types("train --offline --data coco8").refused(1, &["coco8.zip", "offline"]);
    machine.types("setup --data coco8").succeeded();
    machine.types("train --offline --data coco8").refused(1, &["yolov5s.pt", "offline"]);
    #[cfg(target_os = "linux")]
    machine.types("setup --offline --libtorch cu126").refused(1, &["libtorch 2.11.0 (cu126)", "offline"]);
}

#[cfg(windows)]
#[test]
fn on_windows_libtorch_is_for_wsl() {
    coco8().types("setup").refused(1, &["there is no libtorch for windows", "`yolo setup --wsl`"]);
}

/// Libtorch exists for Linux, and kills and Ctrl-C are signals there.
#[cfg(target_os = "linux")]
mod on_linux {
    use super::*;

    #[test]
    fn a_cuda_variant_comes_with_all_its_wheels_and_is_loaded() {
        let Some(files) = wheels::cu126() else {
            println!("skipped: there is no C compiler for the libraries of this test");
            return;
        };
        let machine = Machine::with(files);
        let plan = machine.json("setup --libtorch cu126 --dry-run --json");
        assert!(plan["steps"][0]["transfer"].as_u64().unwrap() > wheels::BALLAST as u64, "{plan}");
        let answer = machine.types("setup --libtorch cu126").succeeded();
        for words in ["it loads and computes on the CPU", "CUDA 12.6", "0 GPUs", "rests on the mirror"] {
            assert!(answer.stderr.contains(words), "{words} is not in:\n{}", answer.stderr);
        }
        let root = machine.home().join("data/libtorch/2.11.0-cu126");
        wheels::assert_whole(&root);
        let asked = machine.server.asked().len();
        machine.types("setup").succeeded();
        machine.types("setup --libtorch cu126 --offline").succeeded();
        assert_eq!(machine.server.asked().len(), asked, "a repeated run asked the server");
        let list = machine.types("setup --list").succeeded().stdout;
        assert!(list.contains("cu126") && list.contains("runs use it"), "{list}");
        // A library that is gone is noticed, and fetched again.
        fs::remove_file(root.join("lib/libcudart.so.12")).unwrap();
        machine.types("setup").succeeded();
        wheels::assert_whole(&root);
        machine.types("setup --remove cu126").succeeded();
        assert!(!root.exists());
    }

    #[test]
    fn a_libtorch_that_does_not_load_is_not_put_in_place() {
        let Some(mut files) = wheels::cu126() else {
            println!("skipped: there is no C compiler for the libraries of this test");
            return;
        };
        // Without the runtime wheel's library, libtorch_cuda cannot be loaded.
        let torch = files.keys().find(|name| name.contains("torch-2.11.0")).unwrap().clone();
        let text = String::from_utf8(files.remove("/").unwrap()).unwrap();
        files.insert("/".into(), text.into_bytes());
        let bytes = files.get_mut(&torch).unwrap();
        let name = b"libcudart.so.12";
        let broken = b"libcudarx.so.12";
        let at: Vec<usize> = bytes
            .windows(name.len())
            .enumerate()
            .filter(|(_, part)| part == name)
            .map(|(at, _)| at)
            .collect();
        // The libraries are compressed; where the name is not seen, the checksum tells instead.
        for at in &at {
            bytes[*at..at + name.len()].copy_from_slice(broken);
        }
        let half = bytes.len() / 2;
        bytes[half] ^= 1;
        let machine = Machine::with(files);
        let answer = machine.types("setup --libtorch cu126");
        assert_eq!(answer.code, Some(1), "{}", answer.stderr);
        assert!(!machine.home().join("data/libtorch/2.11.0-cu126").exists());
    }

    /// Kills a child once the server has sent so many bytes more, and a little later when it is asked
    /// for more than there are. Whether the child was still at work.
    fn kill_after(
        mut child: std::process::Child,
        server: &RudeServer,
        bytes: usize,
        later: Duration,
    ) -> bool {
        let (before, began) = (server.sent(), Instant::now());
        while server.sent() - before < bytes && child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "the child neither fetched nor ended");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(later);
        let inside = child.try_wait().unwrap().is_none();
        let _ = child.kill();
        child.wait().unwrap();
        inside
    }

    #[test]
    fn killed_at_two_hundred_random_moments_the_next_run_finishes() {
        let Some(files) = wheels::cu126() else {
            println!("skipped: there is no C compiler for the libraries of this test");
            return;
        };
        let paths: Vec<String> = files.keys().filter(|path| path.ends_with(".whl")).cloned().collect();
        let server = RudeServer::start(files);
        let (mut inside, mut resumed, mut state) = (0, 0, 0x9e37_79b9_u64);
        for _ in 0..200 {
            let machine = Machine { user: User::new(), server: RudeServer::start(HashMap::new()) };
            let start = |words: &str| {
                let mut command = machine.command(words);
                command.env("YOLO_MIRROR", server.url("")).stderr(Stdio::piped()).stdout(Stdio::null());
                command.spawn().unwrap()
            };
            // Slow enough that most moments lie inside the transfer.
            paths.iter().for_each(|path| server.behave(path, &[Manner::Limit(16 << 20)]));
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // A moment is a number of bytes; one in four lies behind the last of them.
            let moment = (state >> 33) as usize % (wheels::BALLAST * 4 / 3);
            let later = Duration::from_millis(if moment > wheels::BALLAST { (state >> 40) % 100 } else { 0 });
            let child = start("setup --libtorch cu126");
            inside += usize::from(kill_after(child, &server, moment.min(wheels::BALLAST), later));
            let root = machine.home().join("data/libtorch/2.11.0-cu126");
            if root.exists() {
                wheels::assert_whole(&root);
            }
            let unfinished = machine.home().join("data/libtorch/.incoming-2.11.0-cu126/parts");
            resumed += usize::from(unfinished.is_dir());
            paths.iter().for_each(|path| server.behave(path, &[Manner::Fine]));
            Answer::from(start("setup --libtorch cu126").wait_with_output().unwrap()).succeeded();
            wheels::assert_whole(&root);
            let left: Vec<_> = fs::read_dir(machine.home().join("data/libtorch"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name.starts_with(".incoming"))
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
        assert!(
            inside > 50 && resumed > 20,
            "{inside} kills inside a run, {resumed} with something to go on with"
        );
    }

    #[test]
    fn what_came_before_a_kill_does_not_come_again() {
        let Some(files) = wheels::cu126() else {
            println!("skipped: there is no C compiler for the libraries of this test");
            return;
        };
        let machine = Machine::with(files.clone());
        for path in files.keys().filter(|path| path.contains("torch-2.11.0")) {
            machine.server.behave(path, &[Manner::Limit(1 << 20)]);
        }
        let parts = machine.home().join("data/libtorch/.incoming-2.11.0-cu126/parts");
        let mut child = machine.command("setup --libtorch cu126").stderr(Stdio::null()).spawn().unwrap();
        let size = |extension: &str| -> u64 {
            let entries = fs::read_dir(&parts).into_iter().flatten().flatten();
            let of_kind =
                entries.filter(|entry| entry.path().extension().is_some_and(|found| found == extension));
            of_kind.map(|entry| entry.metadata().map_or(0, |data| data.len())).sum()
        };
        user::until("half of the wheel", || (size("part") > wheels::BALLAST as u64 / 2).then_some(()));
        child.kill().unwrap();
        child.wait().unwrap();
        let (kept, before) = (size("part"), machine.server.sent());
        files.keys().for_each(|path| machine.server.behave(path, &[Manner::Fine]));
        machine.types("setup --libtorch cu126").succeeded();
        let again = (machine.server.sent() - before) as u64;
        // Directories and METADATA are read again; they have some kilobytes.
        assert!(
            again < wheels::BALLAST as u64 - kept + 300_000,
            "{again} bytes came again, {kept} were kept"
        );
    }

    #[test]
    fn an_interrupted_setup_says_that_what_came_is_kept() {
        let machine = coco8();
        machine.server.behave("/coco8.zip", &[Manner::Fine, Manner::Fine, Manner::Fine, Manner::Stall(10)]);
        let child = machine.command("setup --data coco8").stderr(Stdio::piped()).spawn().unwrap();
        user::until("the download", || {
            machine.home().join("data/datasets/.incoming-coco8/parts").is_dir().then_some(())
        });
        std::thread::sleep(Duration::from_millis(200));
        user::send(child.id(), 2);
        let answer = Answer::from(child.wait_with_output().unwrap());
        assert_eq!(answer.code, Some(130), "{}", answer.stderr);
        assert!(answer.stderr.contains("what came is kept"), "{}", answer.stderr);
    }
}

#[test]
fn a_proxy_is_asked_for_every_address() {
    let files = HashMap::from([("http://nowhere.example/coco8.zip".to_owned(), zip(&squares("coco8/")))]);
    let machine = Machine::with(files);
    let mut command = machine.command("setup --data coco8");
    command.env("YOLO_MIRROR", "http://nowhere.example").env("http_proxy", machine.server.url(""));
    Answer::from(command.output().unwrap()).succeeded();
    assert!(machine.server.asked().len() > 1);
}

#[test]
fn two_setups_at_once_install_once() {
    let machine = coco8();
    machine.server.behave("/coco8.zip", &[Manner::Fine, Manner::Limit(100_000)]);
    let piped = || machine.command("setup --data coco8").stderr(Stdio::piped()).spawn().unwrap();
    let (one, other) = (piped(), piped());
    for child in [one, other] {
        Answer::from(child.wait_with_output().unwrap()).succeeded();
    }
    assert!(machine.home().join("data/datasets/coco8/images/train/0.bmp").is_file());
}
