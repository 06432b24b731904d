//! Small wheels of a CUDA variant of libtorch. The libraries are compiled from a few lines of C, export the
//! functions that the smoke test calls, and depend on each other like the real ones.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;

/// A stand-in for libtorch_cpu that multiplies 3×3 matrices.
const CPU: &str = r#"
#include <stdint.h>
#include <stdlib.h>
int32_t aoti_torch_dtype_float32(void) { return 6; }
int32_t aoti_torch_device_type_cpu(void) { return 0; }
int32_t aoti_torch_empty_strided(int64_t n, const int64_t *s, const int64_t *t, int32_t a, int32_t b, int32_t c, void **out) {
    *out = calloc(9, sizeof(float)); return 0; }
int32_t aoti_torch_get_data_ptr(void *h, void **out) { *out = h; return 0; }
int32_t aoti_torch_mm_out(void *o, void *a, void *b) {
    float *x = a, *y = b, *z = o;
    for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) { float s = 0;
        for (int k = 0; k < 3; k++) s += x[i * 3 + k] * y[k * 3 + j]; z[i * 3 + j] = s; }
    return 0; }
int32_t aoti_torch_delete_tensor_object(void *h) { free(h); return 0; }
int32_t torch_get_num_threads(uint32_t *out) { *out = 3; return 0; }
"#;

/// A stand-in for libcudart: CUDA 12.6 without a driver.
const CUDART: &str = "int cudaRuntimeGetVersion(int *v) { *v = 12060; return 0; }\n\
                      int cudaGetDeviceCount(int *n) { *n = 7; return 35; }\n";

/// Incompressible bytes, so that the download takes a while.
pub const BALLAST: usize = 3 << 20;

/// The wheels by their path on a server, and the page that lists them; `None` without a C compiler.
pub fn cu126() -> Option<HashMap<String, Vec<u8>>> {
    cu126_of("int of_no_use;\n")
}

/// The same wheels, but `libtorch_cuda` needs a symbol that no library exports.
pub fn cu126_that_does_not_load() -> Option<HashMap<String, Vec<u8>>> {
    cu126_of("extern int is_nowhere;\nint *of_no_use = &is_nowhere;\n")
}

fn cu126_of(libtorch_cuda: &str) -> Option<HashMap<String, Vec<u8>>> {
    let folder = tempfile::tempdir().unwrap();
    let build = |name: &str, code: &str, needs: &[&str]| {
        let (source, library) = (folder.path().join("x.c"), folder.path().join(name));
        fs::write(&source, code).unwrap();
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed"]);
        command.arg(format!("-Wl,-soname,{name}")).arg("-o").arg(&library).arg(&source);
        command.args(needs.iter().map(|needed| folder.path().join(needed)));
        command.status().is_ok_and(|status| status.success()).then(|| fs::read(library).unwrap())
    };
    let cudart = build("libcudart.so.12", CUDART, &[])?;
    let cpu = build("libtorch_cpu.so", CPU, &[])?;
    let cuda = build("libtorch_cuda.so", libtorch_cuda, &["libtorch_cpu.so", "libcudart.so.12"])?;
    let mut state = 1_u64;
    let ballast: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(BALLAST)
    .collect();
    let torch = wheel(
        "torch-2.11.0+cu126.dist-info",
        "Name: torch\nRequires-Dist: nvidia-cuda-runtime-cu12==12.6.77; platform_system == \"Linux\"\n",
        &[
            ("torch/lib/libtorch_cpu.so", &cpu),
            ("torch/lib/libtorch_cuda.so", &cuda),
            ("torch/lib/libc10.so", &ballast),
            ("torch/include/torch/extension.h", b"// a header"),
            ("torch-2.11.0+cu126.dist-info/licenses/LICENSE", b"BSD"),
        ],
    );
    let runtime = wheel(
        "nvidia_cuda_runtime_cu12-12.6.77.dist-info",
        "Name: nvidia-cuda-runtime-cu12\n",
        &[
            ("nvidia/cuda_runtime/lib/libcudart.so.12", &cudart),
            ("nvidia_cuda_runtime_cu12-12.6.77.dist-info/License.txt", b"NVIDIA"),
        ],
    );
    let names = [
        "torch-2.11.0%2Bcu126-cp312-cp312-manylinux_2_28_x86_64.whl",
        "nvidia_cuda_runtime_cu12-12.6.77-py3-none-manylinux2014_x86_64.whl",
    ];
    let page: String = names.iter().map(|name| format!("<a href=\"{name}\">{name}</a>\n")).collect();
    let mut files = HashMap::from([("/".to_owned(), page.into_bytes())]);
    files.extend(names.into_iter().map(|name| format!("/{name}")).zip([torch, runtime]));
    Some(files)
}

/// A wheel with its METADATA and RECORD.
fn wheel(info: &str, metadata: &str, members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let mut record = String::new();
    let metadata_name = format!("{info}/METADATA");
    let all = members.iter().copied().chain([(metadata_name.as_str(), metadata.as_bytes())]);
    for (name, bytes) in all {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
        let hash = base64_url(&Sha256::digest(bytes));
        record.push_str(&format!("{name},sha256={hash},{}\n", bytes.len()));
    }
    zip.start_file(format!("{info}/RECORD"), SimpleFileOptions::default()).unwrap();
    zip.write_all(record.as_bytes()).unwrap();
    zip.finish().unwrap().into_inner()
}

/// A hash in RECORD's notation.
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bit = |index: usize| bytes.get(index / 8).is_some_and(|byte| byte >> (7 - index % 8) & 1 == 1);
    (0..(bytes.len() * 8).div_ceil(6))
        .map(|place| {
            let value = (0..6).fold(0, |value, shift| value << 1 | usize::from(bit(place * 6 + shift)));
            char::from(ALPHABET[value])
        })
        .collect()
}

/// Asserts that this folder contains the whole variant, as served.
pub fn assert_whole(root: &Path) {
    for name in ["libtorch_cpu.so", "libtorch_cuda.so", "libcudart.so.12"] {
        assert!(fs::read(root.join("lib").join(name)).unwrap().starts_with(b"\x7fELF"), "{name}");
    }
    assert_eq!(fs::metadata(root.join("lib/libc10.so")).unwrap().len(), BALLAST as u64);
    assert_eq!(fs::read(root.join("licenses/torch/LICENSE")).unwrap(), b"BSD");
    assert_eq!(fs::read(root.join("licenses/nvidia-cuda-runtime-cu12/License.txt")).unwrap(), b"NVIDIA");
    assert!(root.join("yolo-setup.json").is_file() && !root.join("records").exists());
}
