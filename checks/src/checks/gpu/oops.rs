//! Whether the driver's module crashed in the kernel, or hangs there. The kernel writes a heading, and below it where the
//! fault is: `RIP: 0010:_nv012345rm+0x1b/0x30 [nvidia]`.

use crate::facts::Host;
use crate::finding::Finding;
use crate::remedies::restart::restart;

/// Headings of faults after which what used the module never returns.
const CRASHED: [&str; 5] = [
    "BUG: unable to handle ",
    "BUG: kernel NULL pointer dereference",
    "general protection fault",
    "kernel BUG at ",
    "Oops: ",
];
/// Headings of what may have ended since.
const STUCK: [&str; 4] = ["BUG: soft lockup", "hard LOCKUP", "blocked for more than", "WARNING: CPU: "];
/// How the modules of the driver are named in a trace.
const MODULES: [&str; 4] = ["[nvidia]", "[nvidia_uvm]", "[nvidia_modeset]", "[nvidia_drm]"];
/// How long a trace is, in lines.
const LENGTH: usize = 80;

/// The heading and the place of the first crash in a module of the driver.
pub(super) fn crashed(log: &str) -> Option<[String; 2]> {
    find(log, &CRASHED, |line| line.contains("RIP: "))
}

/// The same of a call that does not end, in which the module may be anywhere in the trace.
pub(super) fn stuck(log: &str) -> Option<[String; 2]> {
    find(log, &STUCK, |_| true)
}

/// The lines below a heading that belong to it.
pub(super) fn trace<'a>(log: &'a str, heading: &str) -> Vec<&'a str> {
    let below = log.lines().skip_while(|line| line.trim() != heading).skip(1).take(LENGTH);
    below
        .take_while(|line| {
            !line.contains("[ end trace ") && !CRASHED.iter().chain(&STUCK).any(|text| line.contains(text))
        })
        .collect()
}

fn find(log: &str, headings: &[&str], is_place: impl Fn(&str) -> bool) -> Option<[String; 2]> {
    let lines: Vec<&str> = log.lines().collect();
    // `traps:` is of a program, not of the kernel.
    let is_heading =
        |line: &str| headings.iter().any(|text| line.contains(text)) && !line.contains("traps: ");
    let is_other = |line: &str| {
        CRASHED.iter().chain(&STUCK).any(|text| line.contains(text)) || line.contains("WARNING: CPU: ")
    };
    let of_module = |line: &str| is_place(line) && MODULES.iter().any(|name| line.contains(name));
    lines.iter().enumerate().filter(|(_, line)| is_heading(line)).find_map(|(place, heading)| {
        let below = lines[place + 1..].iter().take(LENGTH);
        // Below the next heading, or the end, is another fault.
        let mut own = below.take_while(|line| {
            !line.contains("[ end trace ") && (!is_other(line) || line.contains("Oops: "))
        });
        let line = own.find(|line| of_module(line))?;
        Some([heading.trim().to_owned(), line.trim().to_owned()])
    })
}

/// The finding about a driver that still answers after a crash.
pub(super) fn answering(host: &Host) -> Option<Finding> {
    if !super::is_native_linux(host) {
        return None;
    }
    let lines = crashed(&host.kernel_log().ok()?)?;
    let title = "the NVIDIA driver's module crashed in the kernel; the next program that uses a GPU may hang";
    let finding = Finding::new("gpu.driver-silent", title)
        .status(crate::status::Status::Warning)
        .because("a fault of the driver's module ended a program in the kernel; what it had locked stays locked until a restart")
        .remedy(
            "restart the machine before you train, and continue the run with --resume; if it happens again, install another version \
             of the driver, and test the machine's memory",
        );
    Some(restart(host, lines.into_iter().fold(finding, Finding::seen)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OOPS: &str = "[ 9.1] BUG: unable to handle page fault for address: ffffffffc1a2b3c4\n\
         [ 9.1] Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI\n\
         [ 9.1] CPU: 3 UID: 1000 PID: 4167 Comm: python3\n\
         [ 9.1] RIP: 0010:_nv012345rm+0x1b/0x30 [nvidia]\n\
         [ 9.1] ---[ end trace 0000000000000000 ]---";

    #[test]
    fn a_fault_is_of_the_driver_if_its_place_is() {
        assert!(crashed(OOPS).is_some());
        let other = OOPS.replace("_nv012345rm+0x1b/0x30 [nvidia]", "i915_gem_fault+0x1/0x2 [i915]");
        assert_eq!(crashed(&format!("{other}\n[ 9.2]  ? x+0x1/0x2 [nvidia]")), None);
        let warning = "[ 5.0] WARNING: CPU: 1 PID: 9 at nouveau/nv.c:1 x [nouveau]\n[ 5.0] RIP: 0010:x+0x1/0x2 [nouveau]";
        assert_eq!((crashed(warning), stuck(warning)), (None, None));
    }

    #[test]
    fn a_task_is_stuck_in_the_driver_if_its_trace_says_so() {
        let task = "[ 9.1] INFO: task python3:123 blocked for more than 122 seconds.\n[ 9.1]  os_acquire_mutex+0x3/0x5 [nvidia]";
        assert!(stuck(task).is_some() && crashed(task).is_none());
        assert_eq!(stuck(&task.replace("[nvidia]", "[nfs]")), None);
    }

    proptest! {
        #[test]
        fn any_log_is_read(log in "(Oops: |RIP: |\\[nvidia\\]|blocked for more than|BUG: soft lockup|end trace|\\PC|\n){0,40}") {
            let _ = (crashed(&log), stuck(&log));
        }
    }
}
