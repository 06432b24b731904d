//! NVIDIA's service that writes the CDI specification, of a version that waits for all services of the machine. Docker
//! and other services wait for it in turn, and systemd breaks the circle by leaving one of them out: after a restart of
//! the machine Docker does not run, or containers have no specification.

use crate::facts::Host;
use crate::finding::Finding;
use crate::status::Status;

const SERVICE: &str = "nvidia-cdi-refresh.service";

/// `container.toolkit-missing` if systemd says so: `docker.service: Found ordering cycle on nvidia-cdi-refresh.service/start`.
pub(super) fn find(host: &Host) -> Option<Finding> {
    let of_log = host.kernel_lines(&["ordering cycle", "break cycle"]);
    let recorded = host.recorded_outputs("journalctl").into_iter().map(|(_, output)| output.text());
    let recorded = recorded.flat_map(|text| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>());
    let lines: Vec<String> = of_log.into_iter().chain(recorded).filter(|line| is_about(line)).collect();
    let first = lines.first()?.clone();
    let left_out = lines.iter().find_map(|line| left_out(line));
    let title = match left_out.as_deref() {
        Some(SERVICE) => format!(
            "systemd did not start NVIDIA's {SERVICE}, because it and other services wait for each other"
        ),
        Some(name) => {
            format!("systemd did not start {name}, because it and NVIDIA's {SERVICE} wait for each other")
        }
        None => format!("services of this machine and NVIDIA's {SERVICE} wait for each other"),
    };
    let finding = Finding::new("container.toolkit-missing", title)
        .status(Status::Warning)
        .because(
            "this version of the service waits until all services have started, and Docker and others wait for it; systemd then leaves \
             one of them out each time the machine starts",
        )
        .seen(first)
        .remedy(
            "update the NVIDIA Container Toolkit to 1.19.1 or later, whose service waits for none, and start what was left out; if there \
             is no such version yet, take the line `After=multi-user.target` out of a copy of the unit in /etc/systemd/system",
        );
    let update = host.package_command([
        "sudo apt install nvidia-container-toolkit nvidia-container-toolkit-base",
        "sudo dnf upgrade nvidia-container-toolkit-base",
        "sudo zypper update nvidia-container-toolkit-base",
        "sudo pacman -Syu nvidia-container-toolkit",
    ]);
    // The toolkit of an image comes with the next one.
    let update = update.filter(|_| !host.is_image());
    let finding = update.into_iter().fold(finding, Finding::command);
    let service = left_out.unwrap_or_else(|| SERVICE.to_owned());
    Some(finding.command(format!("sudo systemctl start {service}")))
}

fn is_about(line: &str) -> bool {
    line.contains("cycle") && line.contains("nvidia-cdi-refresh")
}

/// `Job docker.service/start deleted to break ordering cycle`, `Unable to break cycle starting with docker.service/start`
fn left_out(line: &str) -> Option<String> {
    let job = match line.split_once("Job ") {
        Some((_, rest)) if rest.contains(" deleted to break") => rest,
        _ => line.split_once("Unable to break cycle starting with ")?.1,
    };
    let name = job.split_whitespace().next()?.strip_suffix("/start")?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.@:".contains(letter);
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_service_that_was_left_out_is_read() {
        let of = |line: &str| left_out(line);
        assert_eq!(
            of(
                "nvidia-cdi-refresh.service: Job docker.service/start deleted to break ordering cycle starting with \
                nvidia-cdi-refresh.service/start"
            ),
            Some("docker.service".to_owned())
        );
        assert_eq!(
            of("docker.service: Unable to break cycle starting with docker.service/start"),
            Some("docker.service".to_owned())
        );
        assert_eq!(of("docker.service: Found ordering cycle on nvidia-cdi-refresh.service/start"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(Job | deleted to break|Unable to break cycle starting with |/start|\\PC){0,6}") {
            let _ = left_out(&line);
        }
    }
}
