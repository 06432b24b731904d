//! Data sets: their sources, what is rejected, and what is reported about images and labels.

use std::collections::HashMap;
use std::fs;

use crate::machine::{Machine, coco8, squares, zip};
use crate::user::square;

#[test]
fn a_known_data_set_is_downloaded_verified_and_reused() {
    let machine = coco8();
    let first = machine.run("setup --data coco8").succeeded();
    for words in ["train: 4 images, 4 boxes", "val: 2 images, 2 boxes", "2 of 80 classes", "person 3"] {
        assert!(first.stderr.contains(words), "{words} is not in:\n{}", first.stderr);
    }
    let yaml = fs::read_to_string(machine.home().join("data/datasets/coco8/coco8.yaml")).unwrap();
    assert!(yaml.contains("79: toothbrush"), "{yaml}");
    let asked = machine.server.asked().len();
    let second = machine.run("setup --data coco8 --offline").succeeded();
    assert!(second.stderr.contains("train: 4 images"), "{}", second.stderr);
    assert_eq!(machine.server.asked().len(), asked, "the second run asked the server");
}

#[test]
fn the_download_urls_of_a_yaml_may_be_zip_or_tar_gz() {
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
        let output = machine.run(&format!("setup --data {name}.yaml")).succeeded();
        assert!(output.stderr.contains("train: 4 images, 4 boxes"), "{}", output.stderr);
        assert!(machine.home().join(format!("data/datasets/{name}/images/val/1.bmp")).is_file());
    }
}

#[test]
fn an_archive_of_something_else_is_rejected_and_nothing_is_installed() {
    let machine = Machine::with(HashMap::from([("/coco8.zip".to_owned(), zip(&squares("pictures/of/")))]));
    // The yaml of a known data set is built in, so the mirror's file is at fault.
    machine.run("setup --data coco8").failed_with(
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

#[test]
fn missing_folders_are_listed_once() {
    let train_only: Vec<_> = squares("").into_iter().filter(|(name, _)| name.contains("train")).collect();
    let machine = Machine::with(HashMap::from([("/ds.zip".to_owned(), zip(&train_only))]));
    machine.yaml("ds.yaml", "ds", &machine.server.url("/ds.zip"));
    let output = machine.run("setup --data ds.yaml");
    output.failed_with(1, &["do not contain images/val, but images, labels"]);
    let both = "path: ds\ntrain: pictures\nval: pictures\nnames: [red, blue]\ndownload: ";
    fs::write(machine.user.path().join("both.yaml"), format!("{both}{}", machine.server.url("/ds.zip")))
        .unwrap();
    machine.run("setup --data both.yaml").failed_with(1, &["do not contain pictures, but"]);
}

#[test]
fn two_data_sets_for_one_folder_are_rejected_and_neither_is_changed() {
    let other: Vec<_> = squares("").into_iter().filter(|(name, _)| !name.contains("train/3")).collect();
    let files = [("/one.zip".to_owned(), zip(&squares(""))), ("/other.zip".to_owned(), zip(&other))];
    let machine = Machine::with(HashMap::from(files));
    let (one, other) = (machine.server.url("/one.zip"), machine.server.url("/other.zip"));
    machine.yaml("one.yaml", "ds", &one);
    machine.yaml("other.yaml", "ds", &other);
    let words = ["ds can hold only one data set", one.as_str(), other.as_str(), "a different `path`"];
    machine.run("setup --data one.yaml other.yaml").failed_with(1, &words);
    assert_eq!(machine.installed(), Vec::<String>::new());
    machine.run("setup --data one.yaml").succeeded();
    let before = machine.installed();
    machine.run("setup --data other.yaml").failed_with(1, &words);
    assert_eq!(machine.installed(), before);
    machine.run("setup --data one.yaml --offline").succeeded();
    // The same name twice is one data set.
    assert_eq!(machine.json("setup --data one.yaml one.yaml --json")["done"].as_array().unwrap().len(), 1);
}

#[test]
fn a_known_data_set_does_not_replace_one_from_a_yaml() {
    let machine = coco8();
    machine.yaml("mine.yaml", "coco8", &machine.server.url("/coco8.zip"));
    machine.run("setup --data mine.yaml").succeeded();
    machine.run("setup --data coco8").failed_with(1, &["coco8 can hold only one data set"]);
}

#[test]
fn a_data_set_that_lost_files_is_downloaded_again() {
    let machine = coco8();
    machine.run("setup --data coco8").succeeded();
    let root = machine.data_sets().join("coco8");
    for (lost, missing) in [
        ("labels", "6 files of an earlier download are missing"),
        ("images/train/2.bmp", "1 file of an earlier download is missing"),
    ] {
        let lost = root.join(lost);
        if lost.is_dir() {
            fs::remove_dir_all(&lost).unwrap()
        } else {
            fs::remove_file(&lost).unwrap()
        }
        let offline = machine.run("setup --data coco8 --offline");
        // Training is impossible without labels, but possible without one image.
        let expected = if lost.ends_with("labels") { 1 } else { 0 };
        assert_eq!(offline.code, Some(expected), "{}", offline.stderr);
        assert!(offline.stderr.contains("files of coco8 are missing"), "{}", offline.stderr);
        assert!(!offline.stderr.contains("train: 4 images, 4 boxes"), "{}", offline.stderr);
        let plan = machine.run("setup --data coco8 --dry-run").succeeded();
        assert!(plan.stdout.contains(missing), "{}", plan.stdout);
        let again = machine.run("setup --data coco8").succeeded();
        assert!(again.stderr.contains("train: 4 images, 4 boxes"), "{}", again.stderr);
        assert!(lost.exists());
    }
}

#[test]
fn changes_by_the_user_are_counted_and_never_overwritten() {
    let machine = coco8();
    machine.run("setup --data coco8").succeeded();
    let root = machine.data_sets().join("coco8");
    fs::write(root.join("labels/train/0.txt"), "").unwrap();
    fs::write(root.join("labels/train.cache"), "what a trainer keeps").unwrap();
    let asked = machine.server.asked().len();
    let output = machine.run("setup --data coco8").succeeded();
    assert!(output.stderr.contains("train: 4 images, 3 boxes, 1 without"), "{}", output.stderr);
    assert_eq!(machine.server.asked().len(), asked, "nothing is missing, so that nothing is fetched");
    fs::write(
        root.join("labels/train/1.txt"),
        "0 0.5 0.5 0.25 0.25\n0 0.5 0.5 0.125 0.125\n1 0.5 0.5 0.2 0.2\n",
    )
    .unwrap();
    fs::remove_file(root.join("images/val/0.bmp")).unwrap();
    machine.run("setup --data coco8").failed_with(1, &["contains files that setup did not install"]);
    assert!(fs::read_to_string(root.join("labels/train/1.txt")).unwrap().contains("0.125"));
}

#[test]
fn a_file_at_the_path_of_a_data_set_is_not_replaced() {
    let machine = coco8();
    fs::create_dir_all(machine.data_sets()).unwrap();
    fs::write(machine.data_sets().join("coco8"), "precious").unwrap();
    machine.run("setup --data coco8").failed_with(1, &["coco8 is a file that setup did not install"]);
    assert_eq!(fs::read_to_string(machine.data_sets().join("coco8")).unwrap(), "precious");
}

#[test]
fn a_local_archive_is_unpacked_and_kept() {
    let machine = coco8();
    let archive = machine.user.path().join("my sets/ds.zip");
    fs::create_dir_all(archive.parent().unwrap()).unwrap();
    fs::write(&archive, zip(&squares("ds/"))).unwrap();
    machine.yaml("one.yaml", "one", "my sets/ds.zip");
    machine.yaml("two.yaml", "two", &archive.display().to_string());
    machine.run("setup --data one.yaml two.yaml --offline").succeeded();
    assert!(archive.is_file() && machine.data_sets().join("two/images/val/1.bmp").is_file());
    machine.yaml("three.yaml", "three", "nothing.zip");
    machine.run("setup --data three.yaml").failed_with(1, &["nothing.zip", "cannot open it"]);
}

#[test]
fn unsupported_downloads_are_named_by_their_kind() {
    let machine = coco8();
    for (download, words) in [
        ("ftp://joe:secret@h/x.zip", ["the unsupported kind ftp://", "http:// or https://"]),
        ("https://h.invalid/my ds.zip", ["a URL with a space in it", "%20"]),
        ("scripts/get.sh", ["is a script, which is never run", "it is scripts/get.sh"]),
        ("curl -L https://h.invalid/x.zip -o x.zip", ["is a shell command", "would have downloaded"]),
        ("7", ["download is 7; it must be a URL", "7"]),
    ] {
        machine.yaml("odd.yaml", "odd", download);
        let output = machine.run("setup --data odd.yaml").failed_with(1, &words);
        assert!(!output.stderr.contains("secret"), "{}", output.stderr);
    }
}

#[test]
fn a_download_that_is_code_is_rejected_with_what_it_would_do() {
    let machine = coco8();
    let script = "path: x\ntrain: t\nval: v\nnames: [a]\ndownload: |\n  from urllib import request\n  request.urlretrieve('https://h.example/x.zip')\n";
    fs::write(machine.user.path().join("script.yaml"), script).unwrap();
    machine
        .run("setup --data script.yaml")
        .failed_with(1, &["script.yaml", "Python script", "would have downloaded https://h.example/x.zip"]);
    let bash = "path: x\ntrain: t\nval: v\nnames: [a]\ndownload: bash data/scripts/get.sh\n";
    fs::write(machine.user.path().join("bash.yaml"), bash).unwrap();
    machine.run("setup --data bash.yaml").failed_with(1, &["shell command", "bash data/scripts/get.sh"]);
}

#[test]
fn invalid_images_and_labels_are_reported() {
    let mut members = squares("coco8/");
    members[0].1 = b"this is text".to_vec();
    members[3].1 = b"0 0.5 0.5 1.5 0.2\n".to_vec();
    if cfg!(unix) {
        members.push(("coco8/images/train/x\nERROR: y.bmp".to_owned(), b"no image".to_vec()));
    }
    let machine = Machine::with(HashMap::from([("/coco8.zip".to_owned(), zip(&members))]));
    let output = machine.run("setup --data coco8").succeeded();
    let corrupt = if cfg!(unix) { "3 corrupt" } else { "2 corrupt" };
    for words in [corrupt, "0.bmp", "1.txt"] {
        assert!(output.stderr.contains(words), "{words} is not in:\n{}", output.stderr);
    }
    assert!(!output.stderr.contains("\nERROR:"), "a name forged a line:\n{}", output.stderr);
}

#[test]
fn a_class_out_of_range_is_reported_with_all_other_problems() {
    let mut members = squares("");
    let label = |name: &str, text: &str| (format!("labels/train/{name}.txt"), text.as_bytes().to_vec());
    members.retain(|(name, _)| !["labels/train/0.txt", "labels/train/1.txt"].contains(&name.as_str()));
    members.extend([label("0", "9 0.5 0.5 0.25 0.25\n"), label("1", "0 nan 0.5 0.25 0.25\n")]);
    let machine = Machine::with(HashMap::from([("/ds.zip".to_owned(), zip(&members))]));
    machine.yaml("ds.yaml", "ds", &machine.server.url("/ds.zip"));
    let output = machine.run("setup --data ds.yaml");
    output.failed_with(
        1,
        &[
            "train: 3 images, 3 boxes, 0 without objects, 1 corrupt",
            "problem: ",
            "1.txt:1",
            "the data set ds is installed, but cannot be used for training",
            "0.txt:1: class 9, but the data set names 2 classes",
            "add the missing class",
        ],
    );
}

#[test]
fn voc_is_converted_to_images_and_labels() {
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
    // One annotation is damaged, and one object has a class that is not in VOC.
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
    let output = machine.run("setup --data VOC").succeeded();
    assert!(
        output.stderr.contains("train: 4 images, 4 boxes, 0 without objects, 1 corrupt"),
        "{}",
        output.stderr
    );
    for words in
        ["VOC2007/Annotations/odd.xml: image left out: it is not XML", "1 object left out", "unicorn 1"]
    {
        assert!(output.stderr.contains(words), "{words} is not in:\n{}", output.stderr);
    }
    assert!(
        output.stderr.contains("val: 1 image, 1 box") && output.stderr.contains("cat 5"),
        "{}",
        output.stderr
    );
    let label = machine.home().join("data/datasets/VOC/labels/test2007/2007_test.txt");
    assert_eq!(fs::read_to_string(label).unwrap(), "7 0.375 0.375 0.5 0.5\n");
}
