//! Every kind of tensor in every layout and pickle protocol, as PyTorch 2.11 wrote them (`golden/generate_corpus.py`): what
//! is supported is read with the shape and the bytes that PyTorch sees, the rest is refused by its name.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use torch_checkpoint::{Format, inspect, read};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/corpus").join(name)
}

#[test]
fn every_type_view_and_shared_storage_is_read_like_pytorch() {
    let expected: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&std::fs::read(corpus("expected.json")).unwrap()).unwrap();
    for (layout, format) in [("zip", Format::Zip), ("legacy", Format::Legacy)] {
        for protocol in 2..=5 {
            let path = corpus(&format!("{layout}{protocol}.pt"));
            let file = read(&path).unwrap();
            assert!(file.tensors.keys().eq(expected.keys()), "{layout}{protocol}: {:?}", file.tensors.keys());
            for (name, tensor) in &file.tensors {
                let sum: String =
                    Sha256::digest(&tensor.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
                let ours = serde_json::json!([tensor.dtype.name(), tensor.shape, sum]);
                assert_eq!(ours, expected[name], "{name} in {layout}{protocol}");
            }
            let inspection = inspect(&path).unwrap();
            assert_eq!((inspection.format, inspection.protocol), (format, Some(protocol)));
            assert!(
                inspection.references.iter().all(|reference| reference.allowed),
                "{:?}",
                inspection.references
            );
            assert!(inspection.problem.is_none(), "{:?}", inspection.problem);
        }
    }
}

#[test]
fn tensors_of_other_kinds_are_refused_by_name() {
    for (name, expected) in [
        ("sparse", "contains a sparse tensor, which is not supported"),
        ("sparse_csr", "contains a sparse tensor, which is not supported"),
        ("quantized", "contains a quantized tensor, which is not supported"),
        ("complex", "contains a tensor of complex numbers, which is not supported"),
        ("float8", "contains a tensor of type torch.float8_e4m3fn, which is not supported"),
        ("uint16", "contains a tensor of type torch.uint16, which is not supported"),
        ("nested", "contains a nested tensor, which is not supported"),
        ("meta", "contains a tensor without data (on the device `meta`), which is not supported"),
    ] {
        let error = read(&corpus(&format!("refused/{name}.pt"))).unwrap_err();
        assert!(error.to_string().ends_with(expected), "{name}: {error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("float32")), "{name}: {:?}", error.hint());
    }
}
