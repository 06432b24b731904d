//! The smoke test of a libtorch. A separate process loads it and multiplies two matrices on the CPU; a
//! CUDA variant also reports the versions of its libraries and the GPUs that it can use. So a library that
//! is missing or does not load is noticed during setup and not when a run starts.

use std::error::Error as _;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libloading::Library;
use serde::{Deserialize, Serialize};
use yolo_base::format;

use crate::setup::error::{LibtorchError, SetupError};

/// The hidden subcommand of `yolo` that runs the test.
pub const SUBCOMMAND: &str = "__smoke-test";

/// The result of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmokeTest {
    /// Threads that libtorch would use.
    pub threads: u32,
    /// CUDA, if the variant has it.
    pub cuda: Option<CudaReport>,
}

/// The result of a CUDA variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaReport {
    /// Version of libcudart, such as 13.0.
    pub runtime: String,
    /// Version of cuDNN, such as 91900.
    pub cudnn: Option<usize>,
    /// Version of NCCL, such as 22809.
    pub nccl: Option<i32>,
    /// The number of GPUs that it can use.
    pub devices: i32,
}

impl SmokeTest {
    /// The result as a clause of a message.
    pub fn describe(&self) -> String {
        match &self.cuda {
            None => format!("it loads, computes on the CPU and uses {} threads", self.threads),
            Some(cuda) => format!(
                "it loads and computes on the CPU; CUDA {}{}{} finds {}",
                cuda.runtime,
                cuda.cudnn.map_or(String::new(), |version| format!(", cuDNN {version}")),
                cuda.nccl.map_or(String::new(), |version| format!(", NCCL {version}")),
                format::count(usize::try_from(cuda.devices).unwrap_or(0), "GPU"),
            ),
        }
    }
}

/// Runs the test of the libraries in `lib` in a child process.
///
/// # Errors
/// When they cannot be loaded, or compute a wrong result.
pub(super) fn run_in_child(lib: &Path) -> Result<SmokeTest, SetupError> {
    let wrong = |why: String| SetupError::from(LibtorchError::DoesNotLoad { folder: lib.to_owned(), why });
    // On Linux this is the running program, even if its file has just been replaced.
    let exe = if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().map_err(SetupError::file("find", "this program"))?
    };
    let output = Command::new(exe)
        .arg(SUBCOMMAND)
        .arg(lib)
        // The libraries must find each other without help.
        .env_remove(LD_LIBRARY_PATH)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| wrong(error.to_string()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let line = stderr.lines().rev().find(|line| !line.trim().is_empty());
        let line = line.map(|line| line.strip_prefix("warning: ").unwrap_or(line));
        return Err(wrong(line.map_or_else(|| output.status.to_string(), str::to_owned)));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| wrong(format!("the test printed no result ({error})")))
}

/// The test itself, which runs in the child process. Returns the result as JSON.
///
/// # Errors
/// One line, when something does not load or a result is wrong.
pub fn run(lib: &Path) -> Result<String, String> {
    let cpu = Loaded::open(lib, "libtorch_cpu.so")?;
    let threads = cpu.multiply()?;
    let cuda = lib.join("libtorch_cuda.so").exists().then(|| test_cuda(lib)).transpose()?;
    serde_json::to_string(&SmokeTest { threads, cuda }).map_err(|error| error.to_string())
}

fn test_cuda(lib: &Path) -> Result<CudaReport, String> {
    let _cuda = Loaded::open(lib, "libtorch_cuda.so")?;
    let named = |start: &str| {
        let entries = std::fs::read_dir(lib).ok()?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        { names }.find(|name| name.starts_with(start))
    };
    let runtime = named("libcudart.so").ok_or("there is no libcudart next to it")?;
    let runtime = Loaded::open(lib, &runtime)?;
    let version = runtime.int("cudaRuntimeGetVersion")?.1;
    // Fails without a driver; then there is no device.
    let (status, devices) = runtime.int("cudaGetDeviceCount")?;
    let nccl = named("libnccl.so").map(|name| Loaded::open(lib, &name)?.int("ncclGetVersion")).transpose()?;
    let cudnn =
        named("libcudnn.so").map(|name| Loaded::open(lib, &name)?.size("cudnnGetVersion")).transpose()?;
    Ok(CudaReport {
        runtime: format!("{}.{}", version / 1000, version % 1000 / 10),
        cudnn,
        nccl: nccl.map(|(_, version)| version),
        devices: if status == 0 { devices } else { 0 },
    })
}

use ffi::Loaded;
use yolo_base::env::LD_LIBRARY_PATH;

/// The message of the system's loader, which the error itself omits.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

mod ffi {
    #![expect(unsafe_code, reason = "libraries are loaded and their C functions called")]

    use super::{Library, Path, c_void, reason};

    /// A tensor of libtorch's C interface, freed when dropped.
    struct Tensor<'a> {
        handle: *mut c_void,
        library: &'a Library,
    }

    impl Drop for Tensor<'_> {
        fn drop(&mut self) {
            // SAFETY: the symbol has this type in libtorch's stable C interface (aoti_torch/c/shim.h).
            let free = unsafe {
                self.library
                    .get::<unsafe extern "C" fn(*mut c_void) -> i32>(b"aoti_torch_delete_tensor_object\0")
            };
            if let Ok(free) = free {
                // SAFETY: the handle came from aoti_torch_empty_strided and is freed once.
                unsafe { free(self.handle) };
            }
        }
    }

    /// A library that stays loaded until the process ends.
    pub(super) struct Loaded {
        library: std::mem::ManuallyDrop<Library>,
        name: String,
    }

    impl Loaded {
        pub(super) fn open(lib: &Path, name: &str) -> Result<Self, String> {
            let path = lib.join(name);
            // SAFETY: these are the libraries whose hashes were compared; their initializers are what
            // every program that uses libtorch runs. They are never unloaded, as they do not expect it.
            let library =
                unsafe { open_global(&path) }.map_err(|error| format!("{name}: {}", reason(&error)))?;
            Ok(Self { library: std::mem::ManuallyDrop::new(library), name: name.to_owned() })
        }

        /// Calls `int f(int *)`, and gives its result and the number.
        pub(super) fn int(&self, function: &str) -> Result<(i32, i32), String> {
            let symbol = format!("{function}\0");
            // SAFETY: the functions that are asked for have this type in CUDA's and NCCL's headers.
            let call =
                unsafe { self.library.get::<unsafe extern "C" fn(*mut i32) -> i32>(symbol.as_bytes()) }
                    .map_err(|error| format!("{}: {}", self.name, reason(&error)))?;
            let mut number = 0;
            // SAFETY: the pointer is valid for one int.
            let status = unsafe { call(&raw mut number) };
            Ok((status, number))
        }

        /// Calls `size_t f(void)`.
        pub(super) fn size(&self, function: &str) -> Result<usize, String> {
            let symbol = format!("{function}\0");
            // SAFETY: cudnnGetVersion has this type.
            let call = unsafe { self.library.get::<unsafe extern "C" fn() -> usize>(symbol.as_bytes()) }
                .map_err(|error| format!("{}: {}", self.name, reason(&error)))?;
            // SAFETY: it takes nothing and only reads a constant.
            Ok(unsafe { call() })
        }

        /// Multiplies two 3×3 matrices, checks the product, and gives the number of threads.
        pub(super) fn multiply(&self) -> Result<u32, String> {
            let library: &Library = &self.library;
            let named = |error: libloading::Error| format!("{}: {}", self.name, reason(&error));
            let failed = |what: &str| format!("{}: {what} failed", self.name);
            type Constant = unsafe extern "C" fn() -> i32;
            type Empty =
                unsafe extern "C" fn(i64, *const i64, *const i64, i32, i32, i32, *mut *mut c_void) -> i32;
            type Data = unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> i32;
            type Product = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> i32;
            type Threads = unsafe extern "C" fn(*mut u32) -> i32;
            // SAFETY: the symbols have these types in libtorch 2.11's C interface.
            let (float, cpu, empty, data, product, threads) = unsafe {
                (
                    library.get::<Constant>(b"aoti_torch_dtype_float32\0").map_err(named)?,
                    library.get::<Constant>(b"aoti_torch_device_type_cpu\0").map_err(named)?,
                    library.get::<Empty>(b"aoti_torch_empty_strided\0").map_err(named)?,
                    library.get::<Data>(b"aoti_torch_get_data_ptr\0").map_err(named)?,
                    library.get::<Product>(b"aoti_torch_mm_out\0").map_err(named)?,
                    library.get::<Threads>(b"torch_get_num_threads\0").map_err(named)?,
                )
            };
            let tensor = |fill: [f32; 9]| -> Result<(Tensor<'_>, *mut f32), String> {
                let mut handle = std::ptr::null_mut();
                // SAFETY: sizes and strides are arrays of two numbers, as the first argument says;
                // the last one is a valid place for the handle.
                let status = unsafe {
                    let (float, cpu) = (float(), cpu());
                    empty(2, [3_i64, 3].as_ptr(), [3_i64, 1].as_ptr(), float, cpu, 0, &raw mut handle)
                };
                if status != 0 || handle.is_null() {
                    return Err(failed("making a tensor"));
                }
                let tensor = Tensor { handle, library };
                let mut bytes = std::ptr::null_mut();
                // SAFETY: the handle is valid, and so is the place for the pointer.
                if unsafe { data(tensor.handle, &raw mut bytes) } != 0 || bytes.is_null() {
                    return Err(failed("looking into a tensor"));
                }
                let numbers = bytes.cast::<f32>();
                // SAFETY: the tensor holds nine floats, without gaps.
                unsafe { numbers.copy_from_nonoverlapping(fill.as_ptr(), 9) };
                Ok((tensor, numbers))
            };
            let (one, _) = tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])?;
            let (other, _) = tensor([0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0])?;
            let (result, numbers) = tensor([0.0; 9])?;
            // SAFETY: three valid tensors of fitting shapes.
            if unsafe { product(result.handle, one.handle, other.handle) } != 0 {
                return Err(failed("multiplying two matrices"));
            }
            // SAFETY: the tensor is still alive and holds nine floats.
            let found = unsafe { std::slice::from_raw_parts(numbers, 9) };
            if found != [2.0, 1.0, 6.0, 5.0, 4.0, 12.0, 8.0, 7.0, 18.0] {
                return Err(format!("{}: the product of two matrices is wrong: {found:?}", self.name));
            }
            let mut count = 0;
            // SAFETY: a valid place for one number.
            if unsafe { threads(&raw mut count) } != 0 {
                return Err(failed("asking for the number of threads"));
            }
            Ok(count)
        }
    }

    /// Opens with all symbols visible to later libraries, as libtorch_cuda expects.
    ///
    /// # Safety
    /// As [`Library::new`].
    unsafe fn open_global(path: &Path) -> Result<Library, libloading::Error> {
        #[cfg(unix)]
        {
            use libloading::os::unix::{Library as Unix, RTLD_GLOBAL, RTLD_NOW};
            // SAFETY: passed on to the caller.
            unsafe { Unix::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.map(Into::into)
        }
        #[cfg(not(unix))]
        {
            // SAFETY: passed on to the caller.
            unsafe { Library::new(path) }
        }
    }
}
