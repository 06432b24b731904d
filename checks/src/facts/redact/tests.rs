//! Whole recordings without what they must not tell.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn redacted(value: &Value) -> Value {
    Redaction::of(value).recording(value)
}

#[test]
fn users_and_machines_lose_their_names_everywhere() {
    let given = json!({
        "hostname": "annas-pc",
        "user": { "uid": 1000, "name": "anna" },
        "env": { "HOME": "/home/anna", "HF_TOKEN": "hf_123" },
        "files": { "/mnt/c/Users/Anna Müller/.wslconfig": "swapFile=C:\\\\Users\\\\Anna Müller\\\\s.vhdx" },
        "commands": { "hostname": "annas-pc\n", "ls": "savanna" },
    });
    assert_eq!(
        redacted(&given),
        json!({
            "hostname": "xxxxx-xx",
            "user": { "uid": 1000, "name": "xxxx" },
            "env": { "HOME": "/home/xxxx", "HF_TOKEN": "<hidden>" },
            "files": { "/mnt/c/Users/xxxx xüxxxx/.wslconfig": "swapFile=C:\\\\Users\\\\xxxx xüxxxx\\\\s.vhdx" },
            "commands": { "hostname": "xxxxx-xx\n", "ls": "savanna" },
        })
    );
}

#[test]
fn addresses_and_identifiers_stay_distinct() {
    let given = json!([
        "GPU-f15ae561-21b1-6003-c768-861fc285203b",
        "GPU-466be1f8-6148-1a27-a450-592604f3df54",
        "GPU-f15ae561-21b1-6003-c768-861fc285203b",
        "5.6.7.8 may be a version; 52.3.4.5/24 and 172.17.0.1 and 2.6.1.0",
        "link/ether aa:bb:cc:dd:ee:01 brd ff:ff:ff:ff:ff:ff",
        "00000000:01:00.0",
        "http://anna:secret@proxy.example:3128/",
    ]);
    assert_eq!(
        redacted(&given),
        json!([
            "GPU-00000000-0000-0000-0000-000000000001",
            "GPU-00000000-0000-0000-0000-000000000002",
            "GPU-00000000-0000-0000-0000-000000000001",
            "5.6.7.8 may be a version; 203.0.113.1/24 and 172.17.0.1 and 2.6.1.0",
            "link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff",
            "00000000:01:00.0",
            "http://hidden@proxy.example:3128/",
        ])
    );
}

#[test]
fn addresses_with_ports_and_those_like_versions_are_hidden_by_their_place() {
    let given = json!({
        "intent": { "master_addr": "8.8.4.4" },
        "env": { "NCCL_COMM_ID": "52.95.110.7:4444", "MASTER_ADDR": "8.8.4.4" },
        "commands": { "dmesg": "from [9.9.9.9]:443 of ::ffff:52.95.110.7 to tcp://11.1.2.3:29500; wsl 2.6.1.0" },
        "processes": [{ "pid": 7, "name": "python3", "command": "python3 train.py --master 8.8.4.4" }],
    });
    assert_eq!(
        redacted(&given),
        json!({
            "intent": { "master_addr": "203.0.113.1" },
            "env": { "NCCL_COMM_ID": "198.51.100.1:4444", "MASTER_ADDR": "203.0.113.1" },
            "commands": {
                "dmesg": "from [192.0.2.1]:443 of ::ffff:198.51.100.1 to tcp://203.0.113.2:29500; wsl 2.6.1.0",
            },
            "processes": [{ "pid": 7, "name": "python3", "command": "python3 train.py …" }],
        })
    );
}

#[test]
fn words_of_processes_are_not_told() {
    let command = "python3 -c 'import time;time.sleep(9)' train.py --password hunter2 --token=abc123tok \
                   HF_TOKEN=hf_xyzzy --api-key sk-live-1 -e mail@kowalska.org";
    let given = json!({ "processes": [{ "pid": 7, "name": "python3", "command": command }] });
    assert_eq!(redacted(&given)["processes"][0]["command"], "python3 train.py …");
}

#[test]
fn the_words_of_the_format_stay_whatever_a_user_is_called() {
    let given = json!({
        "version": 1,
        "intent": { "run": true, "cache": "ram", "backend": "nccl" },
        "user": { "uid": 7, "name": "file" },
        "env": { "HOME": "/home/file", "YOLO_HOME": "/data/home/cache" },
        "folders": { "/home": ["file"], "/data/home": ["cache", "config"] },
        "stats": { "/home/file/file": { "kind": "file", "size": 1 } },
    });
    let mut wanted = given.clone();
    wanted["user"]["name"] = json!("xxxx");
    wanted["env"]["HOME"] = json!("/home/xxxx");
    wanted["folders"]["/home"] = json!(["xxxx"]);
    wanted["stats"] = json!({ "/home/xxxx/file": { "kind": "file", "size": 1 } });
    assert_eq!(redacted(&given), wanted);
}

#[test]
fn text_in_utf_16_is_redacted_in_its_encoding() {
    let utf16 = |text: &str| {
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        json!({ "base64": STANDARD.encode(bytes) })
    };
    assert_eq!(redacted(&json!([utf16("C:\\Users\\anna\\x")])), json!([utf16("C:\\Users\\xxxx\\x")]));
}

#[test]
fn bytes_around_a_name_stay() {
    let encoded = |name: &str| {
        let bytes = [&[0x80, 0xFF, 0x50, 0x4B][..], b"/home/", name.as_bytes(), &[0x2F, 0xC3, 0x28]].concat();
        json!({ "base64": STANDARD.encode(bytes) })
    };
    assert_eq!(redacted(&json!([encoded("anna")])), json!([encoded("xxxx")]));
}

proptest! {
    #[test]
    fn a_redacted_text_has_nothing_left_to_redact(text in "(/home/|GPU-|[a-f0-9:.-]|\\PC){0,60}") {
        let once = redacted(&json!([text]));
        prop_assert_eq!(redacted(&once), once);
    }
}
