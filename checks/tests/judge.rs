//! Facts of machines that are not at hand, and what the checks say of them.

use yolo_checks::facts::{DiskFacts, Gpu, GpuFacts, LibtorchFacts, Memory, System};
use yolo_checks::{Fact, Facts, Finding, Intent, Status, judge};

/// A machine on which nothing is wrong.
fn healthy() -> Facts {
    Facts {
        system: System {
            name: "Ubuntu 24.04".to_owned(),
            kernel: "6.8.0-45-generic".to_owned(),
            family: "linux".to_owned(),
            architecture: "x86_64".to_owned(),
            wsl: None,
            cores: 16,
        },
        gpus: Fact::Known(GpuFacts {
            driver: Some("580.65".to_owned()),
            cuda: Some((13, 0)),
            gpus: vec![Gpu {
                index: 0,
                name: Some("NVIDIA H200".to_owned()),
                memory: Some(150_000_000_000),
                memory_used: Some(500_000_000),
                capability: Some((9, 0)),
            }],
        }),
        libtorch: Fact::Known(LibtorchFacts {
            folder: Some("/opt/torch".into()),
            version: Some("2.11.0".to_owned()),
            has_cuda: true,
            from_environment: true,
        }),
        memory: Fact::Known(Memory {
            total: 64_000_000_000,
            available: 50_000_000_000,
            limit: None,
            swap: 0,
        }),
        disks: vec![DiskFacts {
            purpose: "runs".to_owned(),
            folder: "/home".into(),
            available: Fact::Known(200_000_000_000),
        }],
        loopback: Fact::Known(40000),
    }
}

fn of<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    findings
        .iter()
        .rev()
        .find(|finding| finding.id == id)
        .unwrap_or_else(|| panic!("no {id} in {findings:#?}"))
}

#[test]
fn a_healthy_machine_has_nothing_worse_than_ok() {
    let findings = judge(&healthy(), &Intent::default());
    assert!(findings.iter().all(|finding| finding.status == Status::Ok), "{findings:#?}");
}

#[test]
fn a_missing_driver_is_an_error_only_when_a_gpu_is_meant() {
    let facts = Facts { gpus: Fact::Unknown("there is no NVIDIA driver".to_owned()), ..healthy() };
    assert_eq!(of(&judge(&facts, &Intent::default()), "gpu.driver").status, Status::Info);
    assert_eq!(of(&judge(&facts, &Intent { gpus: vec![0] }), "gpu.driver").status, Status::Error);
}

#[test]
fn a_gpu_that_is_not_there_is_named() {
    let findings = judge(&healthy(), &Intent { gpus: vec![7] });
    let finding = of(&findings, "gpu.devices");
    assert_eq!(finding.status, Status::Error);
    assert!(finding.title.contains("GPU 7"), "{}", finding.title);
}

#[test]
fn a_cpu_build_beside_a_gpu_is_a_warning_with_a_remedy() {
    let mut facts = healthy();
    if let Fact::Known(libtorch) = &mut facts.libtorch {
        libtorch.has_cuda = false;
    }
    let findings = judge(&facts, &Intent::default());
    let finding = of(&findings, "libtorch.cuda");
    assert_eq!(finding.status, Status::Warning);
    assert!(finding.remedy.is_some());
}

#[test]
fn a_control_group_below_the_machine_decides() {
    let facts = Facts {
        memory: Fact::Known(Memory {
            total: 64_000_000_000,
            available: 50_000_000_000,
            limit: Some(1_000_000_000),
            swap: 0,
        }),
        ..healthy()
    };
    let findings = judge(&facts, &Intent::default());
    let finding = of(&findings, "memory.available");
    assert_eq!(finding.status, Status::Error);
    assert!(finding.title.contains("1.0 GB by a control group"), "{}", finding.title);
}

#[test]
fn wsl_1_cannot_train() {
    let mut facts = healthy();
    facts.system.wsl = Some(1);
    let findings = judge(&facts, &Intent::default());
    assert_eq!(of(&findings, "system.os").status, Status::Error);
}

#[test]
fn what_is_unknown_is_skipped_and_says_why() {
    let facts = Facts { memory: Fact::Unknown("the system does not tell".to_owned()), ..healthy() };
    let findings = judge(&facts, &Intent::default());
    let finding = of(&findings, "memory.available");
    assert_eq!(
        (finding.status, finding.title.as_str()),
        (Status::Skipped, "skipped, because the system does not tell")
    );
}

#[test]
fn facts_survive_json() {
    let facts = healthy();
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts);
}
