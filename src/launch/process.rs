//! Starting the processes of a run. The rendezvous socket is bound here and handed to rank 0 open,
//! so that there is no port race. Ranks that are several get a file without a name in which they share decoded
//! images. Each rank gets the writing end of a pipe for its events, a log file
//! for its output, and its own process group, so that Ctrl-C reaches this process only.

use std::fs::File;
use std::io::PipeReader;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fs_err as fs;
use yolo_base::env::{YOLO_EVENTS_FD, YOLO_IMAGES_FD, YOLO_RENDEZVOUS_FD};
use yolo_data::loader::ImageMemory;
use yolo_plan::RunPlan;

use super::failure::LaunchError;
use super::host::host_name;
use super::log::RankLog;
use super::{Programs, environment, log_text};

/// A started rank.
#[derive(Debug)]
pub(super) struct RankProcess {
    pub(super) child: Child,
    pub(super) events: PipeReader,
    pub(super) log: RankLog,
}

/// Where the ranks meet.
pub(super) struct Store {
    /// Its address.
    pub(super) address: SocketAddr,
    /// The open socket, on the machine that serves it.
    pub(super) socket: Option<TcpListener>,
}

impl Store {
    /// Opens a socket at a free port of this address.
    pub(super) fn open(address: IpAddr) -> std::io::Result<Self> {
        let socket = TcpListener::bind((address, 0))?;
        Ok(Self { address: socket.local_addr()?, socket: Some(socket) })
    }
}

/// Starts the ranks of the plan, which meet at `store` if they are on several machines. If one cannot be started, those before it are killed.
pub(super) fn start(
    plan: &RunPlan,
    plan_file: &Path,
    programs: &Programs,
    store: Option<Store>,
) -> Result<Vec<RankProcess>, LaunchError> {
    let logs = plan.run_dir.join("logs");
    fs::create_dir_all(&logs).map_err(|source| LaunchError::Folder { source })?;
    // Ranks of which this plan has only a part meet where their launcher says.
    let meets_here = plan.ranks.are_all() && (plan.ranks.world_size > 1 || plan.ranks.backend.is_some());
    let store = match store {
        // Invariant: on one machine the ranks listen on loopback only, since c10d has no authentication.
        None if meets_here => Some(
            Store::open(Ipv4Addr::LOCALHOST.into())
                .map_err(|source| LaunchError::Socket { address: Ipv4Addr::LOCALHOST.into(), source })?,
        ),
        store => store,
    };
    let (address, mut socket) = store.map_or((None, None), |store| (Some(store.address), store.socket));
    // Without such files, each rank keeps images of its own, in its share of the memory.
    let images = (plan.ranks.devices.len() > 1).then(|| ImageMemory::shareable().ok()).flatten();
    let mut started = Vec::new();
    for index in 0..plan.ranks.devices.len() {
        let variables = environment::of_rank(plan, index, address, programs);
        let mut command = Command::new(&programs.trainer);
        command.arg(plan_file).envs(variables).stdin(Stdio::null());
        // Rank 0 takes the socket.
        let handed = if index == 0 { socket.take() } else { None };
        let rank = plan.ranks.first + index;
        match spawn(command, handed, images.as_ref(), &logs.join(format!("rank{rank}.log"))) {
            Ok(process) => {
                let pid = process.child.id();
                process.log.say(&log_text::started(plan, index, pid, &host_name(), programs));
                started.push(process);
            }
            Err(source) => {
                stop_all(&mut started);
                return Err(LaunchError::Spawn { program: programs.trainer.clone(), source });
            }
        }
    }
    Ok(started)
}

fn stop_all(started: &mut [RankProcess]) {
    for process in started {
        // Both fail only if the process has already ended.
        let _ = process.child.kill();
        let _ = process.child.wait();
    }
}

/// The first descriptor that is handed to a rank, after its standard ones.
#[cfg(unix)]
const FIRST_HANDED: i32 = 3;

// Invariant: a rank gets its own descriptors and no others. They are closed on exec here, and
// duplicated in the new process only, so that several threads can start ranks, and other programs, at once.
#[cfg(unix)]
fn spawn(
    mut command: Command,
    socket: Option<TcpListener>,
    images: Option<&File>,
    log: &Path,
) -> std::io::Result<RankProcess> {
    use std::os::fd::OwnedFd;
    use std::os::unix::process::CommandExt as _;

    use command_fds::{CommandFdExt as _, FdMapping};

    let log = RankLog::open(log)?;
    let output = log.output()?;
    let (events, writer) = std::io::pipe()?;
    let mut handed = vec![(YOLO_EVENTS_FD, OwnedFd::from(writer))];
    handed.extend(socket.map(|socket| (YOLO_RENDEZVOUS_FD, socket.into())));
    handed.extend(images.map(File::try_clone).transpose()?.map(|images| (YOLO_IMAGES_FD, images.into())));
    let mut mappings = Vec::new();
    for ((variable, parent_fd), child_fd) in handed.into_iter().zip(FIRST_HANDED..) {
        command.env(variable, child_fd.to_string());
        mappings.push(FdMapping { parent_fd, child_fd });
    }
    command.fd_mappings(mappings).map_err(std::io::Error::other)?;
    command.stdout(output.try_clone()?).stderr(output).process_group(0);
    // This process closes its copies of the descriptors when this function returns.
    let child = command.spawn()?;
    Ok(RankProcess { child, events, log })
}

#[cfg(not(unix))]
fn spawn(
    _command: Command,
    _socket: Option<TcpListener>,
    _images: Option<&File>,
    _log: &Path,
) -> std::io::Result<RankProcess> {
    let _ = (YOLO_EVENTS_FD, YOLO_RENDEZVOUS_FD, YOLO_IMAGES_FD);
    Err(std::io::Error::new(
        std::io::ErrorKind::Unsupported,
        "ranks run on Linux and in WSL; on Windows, run `yolo setup --wsl` and train there",
    ))
}
