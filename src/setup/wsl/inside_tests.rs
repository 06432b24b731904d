//! Machines inside WSL, written as folders of the files that Linux shows there.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::printer::Printer;

const NOW: i64 = 1_800_000_000;
const MOUNTS: &str = "70 62 8:32 / / rw,relatime - ext4 /dev/sdc rw\n\
    110 70 0:54 / /mnt/c rw,noatime - 9p C:\\134 rw,dirsync,aname=drvfs;path=C:\\;uid=1000,mmap,trans=fd\n";

/// A WSL of 8 GB, half of the PC, in which nothing is wrong.
struct Machine {
    root: tempfile::TempDir,
    host: Host,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let host = Host {
            root: root.path().to_owned(),
            path:
                "/usr/bin:/mnt/c/Windows/System32:/mnt/c/Users/Ada Rossi/AppData/Local/Microsoft/WindowsApps"
                    .to_owned(),
            windows: Some(format!(
                "memory=17179869184\r\nprocessors=8\r\nbuild=26100\r\nprofile=C:\\Users\\Ada Rossi\r\ntime={NOW}\r\n"
            )),
            now: NOW,
            processors: 8,
            folders: vec![("this folder", PathBuf::from("/home/ada/runs"))],
            is_root: false,
        };
        let machine = Self { root, host };
        machine.write("proc/meminfo", "MemTotal:        8118712 kB\nSwapTotal:       2097152 kB\n");
        machine.write("proc/self/mountinfo", MOUNTS);
        machine.write("proc/stat", "cpu 1 2 3\nbtime 4000000000\n");
        machine.write("etc/ld.so.conf.d/ld.wsl.conf", "# written by WSL\n/usr/lib/wsl/lib\n");
        machine.write("usr/lib/wsl/lib/libcuda.so.1", "");
        machine.write("mnt/c/Users/Public/desktop.ini", "");
        machine.config("[wsl2]\r\nmemory=8GB\r\nswap=2GB\r\nprocessors=8\r\n");
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn config(&self, text: &str) {
        self.write("mnt/c/Users/Ada Rossi/.wslconfig", text);
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap_or_default()
    }

    fn plan(&self) -> (Vec<&'static str>, Vec<String>) {
        let (actions, notes) = plan(&self.host.facts().unwrap(), &Training::default());
        (actions.iter().map(Action::id).collect(), notes)
    }
}

#[test]
fn nothing_is_to_be_done_where_all_is_right() {
    assert_eq!(Machine::new().plan(), (vec![], vec![]));
}

#[test]
fn the_file_is_changed_through_the_windows_drive_and_a_shutdown_is_due() {
    let machine = Machine::new();
    machine.config("# mio\r\n[wsl2]\r\nmemory = 2GB\t# poco\r\nswap=2GB\r\nprocessors=8\r\n");
    assert_eq!(machine.plan().0, ["write-config", "shutdown-wsl"]);
    let printer = Printer::new(true);
    let talk = Talk { printer: &printer, yes: false, dry_run: false, json: false };
    set_up(&machine.host, &Training::default(), &talk).unwrap();
    assert_eq!(
        machine.read("mnt/c/Users/Ada Rossi/.wslconfig"),
        "# mio\r\n[wsl2]\r\nmemory = 8GB\t# poco\r\nswap=2GB\r\nprocessors=8\r\n"
    );
    assert!(machine.read("mnt/c/Users/Ada Rossi/.wslconfig.before-yolo").contains("memory = 2GB"));
    // The machine has 8 GB, so that now all is as the file says.
    assert_eq!(machine.plan().0, [""; 0]);
}

#[test]
fn a_machine_that_started_before_or_after_the_change_is_told_apart() {
    let machine = Machine::new();
    machine.write("proc/meminfo", "MemTotal:        4000000 kB\nSwapTotal:       2097152 kB\n");
    assert_eq!(machine.plan().0, ["not-taken"]);
    machine.write("proc/stat", "btime 1000000000\n");
    assert_eq!(machine.plan().0, ["shutdown-wsl"]);
}

#[test]
fn the_loader_the_clock_and_slow_folders_are_looked_after() {
    let mut machine = Machine::new();
    machine.write("etc/ld.so.conf.d/ld.wsl.conf", "# /usr/lib/wsl/lib\n");
    machine.host.now = NOW - 600;
    machine.host.folders = vec![("this folder", PathBuf::from("/mnt/c/Users/Ada Rossi/data"))];
    assert_eq!(machine.plan().0, ["loader-path", "clock", "slow-folder"]);
    machine.write("etc/wsl.conf", "[automount]\nldconfig = false\n");
    assert_eq!(machine.plan().0, ["loader-forbidden", "clock", "slow-folder"]);
}

#[test]
fn without_interop_the_user_comes_from_path_and_the_pc_from_the_machine() {
    let mut machine = Machine::new();
    machine.host.windows = None;
    assert_eq!(machine.plan().0, [""; 0]);
    // Bounded by the file, the machine does not tell the PC's size.
    let (actions, notes) = machine.plan();
    assert!(actions.is_empty() && notes[0].contains("interop with Windows is off"), "{notes:?}");
    machine.config("");
    let facts = machine.host.facts().unwrap();
    let file = Document::parse(ConfigFile::WslConfig, b"");
    assert_eq!(super::pc(&facts, &file).unwrap().memory, 2 * 8_118_712 * 1024);
}

#[test]
fn the_drive_and_the_user_are_found_elsewhere_too() {
    let mut machine = Machine::new();
    machine.host.windows = None;
    machine.host.path = String::new();
    // The one person of this PC.
    assert!(machine.host.facts().unwrap().config.path.ends_with("Ada Rossi/.wslconfig"));
    fs::create_dir(machine.root.path().join("mnt/c/Users/Bob")).unwrap();
    let refused = machine.host.facts().unwrap_err();
    assert!(refused.to_string().contains("holds 2 of them"), "{refused}");
    // Another root of the drives, as virtiofs shows it.
    machine.write("proc/self/mountinfo", "9 1 0:5 / /c rw - virtiofs drvfsC rw,aname=drvfs;path=C:\\\n");
    machine.write("c/Users/Eva/.wslconfig", "[wsl2]\n");
    assert!(machine.host.facts().unwrap().config.path.ends_with("c/Users/Eva/.wslconfig"));
    machine.write("proc/self/mountinfo", "");
    assert!(machine.host.facts().unwrap_err().to_string().contains("drive C: is not mounted"));
}
