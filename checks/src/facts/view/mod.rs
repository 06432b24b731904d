//! The meaning of raw answers: one file per subject, with the methods that it adds to
//! [`Host`](super::Host). Answers are parsed here and not where they are asked, so that the parsers
//! of the program that reads a recording apply.

pub(super) mod binary;
pub(super) mod capabilities;
pub(super) mod cgroup;
pub(super) mod chassis;
pub(super) mod container;
pub(crate) mod data_set;
pub(super) mod device;
pub(super) mod disks;
pub(super) mod distribution;
pub(super) mod docker;
pub(crate) mod drive_fault;
pub(super) mod gpu;
pub(super) mod gpu_names;
pub(super) mod infiniband;
pub(super) mod kernel_log;
pub(super) mod libtorch;
pub(super) mod limits;
pub(crate) mod log_time;
pub(crate) mod meminfo;
pub(super) mod modules;
pub(super) mod nvidia_smi;
pub(crate) mod place;
pub(super) mod release;
pub(super) mod rental;
pub(super) mod supported;
pub(super) mod version;
pub(super) mod virtual_machine;
pub(super) mod windows;
pub(super) mod windows_pc;
pub(super) mod workshop;
pub(super) mod wsl;
pub(super) mod wsl_exe;
pub(super) mod wsl_files;

/// The version in a library's file name: `libcuda.so.550.54.14` is 550.54.14, while the `1` of
/// `libcuda.so.1` is the number of an interface, not a version.
pub fn library_version(path: &str) -> Option<String> {
    let (_, version) = path.rsplit_once(".so.")?;
    let is_version = version.contains('.') && version.split('.').all(|part| part.parse::<u32>().is_ok());
    is_version.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::library_version;

    #[test]
    fn the_version_is_read_from_the_file_name() {
        assert_eq!(library_version("/usr/lib/libcuda.so.550.54.14").as_deref(), Some("550.54.14"));
        assert_eq!(library_version("/usr/lib/libcuda.so.1"), None);
        assert_eq!(library_version("/usr/lib/libcuda.so"), None);
        assert_eq!(library_version("/opt/v1.so.d/lib.so.x.1"), None);
    }
}
