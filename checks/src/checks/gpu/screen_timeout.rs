//! Whether the driver ended work of a training because it blocked a screen: a card that draws one limits how long a kernel
//! may run, and one without a screen does not.

use crate::facts::{Gpu, Host, Xid};
use crate::finding::Finding;
use crate::status::Status;

/// Xid 8 is the time-out of old drivers, 109 that of newer ones.
const TIMED_OUT: [u32; 2] = [8, 109];
/// Programs of trainings, as the driver names them.
const OF_TRAINING: [&str; 3] = ["name=python", "name=yolo", "name=pt_"];

/// The finding about a card that draws a screen.
pub(super) fn find<'a>(host: &Host, gpu: &Gpu, mut xids: impl Iterator<Item = &'a Xid>) -> Option<Finding> {
    let is_drawing =
        gpu.flag("display_active") == Ok(true) || !gpu.graphics_processes().unwrap_or_default().is_empty();
    if !is_drawing || !super::is_native_linux(host) {
        return None;
    }
    let xid = xids.find(|xid| TIMED_OUT.contains(&xid.number) && is_of_training(&xid.line))?;
    let title = format!(
        "{} ended a program that computed for too long (Xid {}): it draws a screen as well",
        super::label(gpu),
        xid.number
    );
    let finding = Finding::new("gpu.xid", title)
        .status(Status::Warning)
        .seen(xid.line.clone())
        .because(
            "on a card with a screen the driver ends work that blocks the screen for some seconds; CUDA then says `the launch timed out \
             and was terminated`",
        )
        .remedy(
            "train on a card without a screen, or attach the screen to the other graphics of the machine; or stop the \
             desktop while you train: save your work first, because that ends all of its programs, log in on the text console \
             (Ctrl+Alt+F3) or by SSH, and start it afterwards (`sudo systemctl isolate graphical.target`); a smaller --batch \
             makes each step \
             shorter; take back any overclocking of the card",
        );
    let has_systemd = host.has_systemd();
    Some(match host.is_own_machine() && has_systemd {
        true => finding.command("sudo systemctl isolate multi-user.target"),
        false => finding,
    })
}

/// Old drivers name no program.
fn is_of_training(line: &str) -> bool {
    OF_TRAINING.iter().any(|name| line.contains(name)) || !line.contains("name=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_game_is_no_training() {
        assert!(is_of_training(
            "NVRM: Xid (PCI:0000:01:00): 109, pid=77, name=python3, Ch 00000008, errorString CTX SWITCH TIMEOUT"
        ));
        assert!(is_of_training("NVRM: Xid (PCI:0000:01:00): 8, Channel 00000020"));
        assert!(!is_of_training("NVRM: Xid (PCI:0000:01:00): 109, pid=77, name=GameThread, Ch 00000008"));
    }
}
