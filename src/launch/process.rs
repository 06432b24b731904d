//! Starting the processes of a run. The rendezvous socket is bound here and handed to rank 0 open,
//! so that no port is raced; each rank gets the writing end of a pipe for its events, a log file
//! for what it prints, and a process group of its own, so that Ctrl-C reaches this process alone.

use std::io::PipeReader;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fs_err as fs;
use yolo_plan::RunPlan;
use yolo_plan::event::{EVENTS_FD, RENDEZVOUS_FD};

use super::failure::LaunchError;
use super::{Programs, environment};

/// A started rank.
#[derive(Debug)]
pub(super) struct RankProcess {
    pub(super) child: Child,
    pub(super) events: PipeReader,
    pub(super) log: PathBuf,
}

/// Starts all ranks; when one cannot be started, those before it are killed.
pub(super) fn start(
    plan: &RunPlan,
    plan_file: &Path,
    programs: &Programs<'_>,
) -> Result<Vec<RankProcess>, LaunchError> {
    let logs = plan.run_dir.join("logs");
    fs::create_dir_all(&logs).map_err(|source| LaunchError::Folder { source })?;
    let socket = if plan.ranks.world_size > 1 {
        // c10d has no authentication: on one machine it listens on loopback only.
        Some(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|source| LaunchError::Socket { source })?)
    } else {
        None
    };
    let address = socket.as_ref().map(TcpListener::local_addr).transpose();
    let address: Option<SocketAddr> = address.map_err(|source| LaunchError::Socket { source })?;
    let mut socket = socket;
    let mut started = Vec::new();
    for rank in 0..plan.ranks.devices.len() {
        let variables = environment::of_rank(plan, rank, address, programs);
        let mut command = Command::new(programs.trainer);
        command.arg(plan_file).envs(variables).stdin(Stdio::null());
        // The socket leaves this process with rank 0.
        let handed = if rank == 0 { socket.take() } else { None };
        match spawn(command, handed, logs.join(format!("rank{rank}.log"))) {
            Ok(process) => started.push(process),
            Err(source) => {
                stop_all(&mut started);
                return Err(LaunchError::Spawn { program: programs.trainer.to_owned(), source });
            }
        }
    }
    Ok(started)
}

fn stop_all(started: &mut [RankProcess]) {
    for process in started {
        // Both fail only when the process has ended by itself.
        let _ = process.child.kill();
        let _ = process.child.wait();
    }
}

#[cfg(unix)]
fn spawn(mut command: Command, socket: Option<TcpListener>, log: PathBuf) -> std::io::Result<RankProcess> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::process::CommandExt as _;

    let output = fs::File::create(&log)?.into_parts().0;
    let (events, writer) = std::io::pipe()?;
    keep_open(&writer)?;
    command.env(EVENTS_FD, writer.as_raw_fd().to_string());
    if let Some(socket) = &socket {
        keep_open(socket)?;
        command.env(RENDEZVOUS_FD, socket.as_raw_fd().to_string());
    }
    command.stdout(output.try_clone()?).stderr(output).process_group(0);
    // `writer` and `socket` are closed here when this function returns, in this process alone.
    let child = command.spawn()?;
    Ok(RankProcess { child, events, log })
}

/// Lets the next child inherit a descriptor. Ranks are started one after the other by one thread,
/// and each descriptor is closed here before the next start, so it reaches that child alone.
#[cfg(unix)]
fn keep_open(descriptor: &impl std::os::fd::AsFd) -> std::io::Result<()> {
    rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?;
    Ok(())
}

#[cfg(not(unix))]
fn spawn(_command: Command, _socket: Option<TcpListener>, _log: PathBuf) -> std::io::Result<RankProcess> {
    let (_, _) = (EVENTS_FD, RENDEZVOUS_FD);
    Err(std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        "ranks are started on Linux and in WSL; on Windows, run `yolo setup --wsl` and train there",
    ))
}
