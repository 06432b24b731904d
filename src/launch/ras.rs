//! Asks NCCL which ranks are behind. Every process that uses NCCL since 2.24 answers questions about all
//! ranks of its run, in plain text on a local port (RAS in NCCL's documentation). A run gets a port of its
//! own, because the default is the same for all runs of a machine.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use yolo_base::env::NCCL_RAS_ADDR;
use yolo_base::format::{count, list};
use yolo_plan::RunPlan;

/// How long NCCL may take to connect, and to answer: it asks all ranks, and those that hang do not answer.
const LIMIT: Duration = Duration::from_secs(8);
/// The largest answer that is read.
const LARGEST: u64 = 1 << 20;

/// Where NCCL answers in a run of this plan: as the user set it, or on a free port, which this writes into
/// the plan. `None` if the user's address is not one of a machine.
pub(super) fn choose_address(plan: &mut RunPlan) -> Option<SocketAddr> {
    if let Some(text) = std::env::var_os(NCCL_RAS_ADDR) {
        return address(text.to_str()?);
    }
    // Another process can take the port before NCCL does; then NCCL does not answer, and nothing else breaks.
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let address = socket.local_addr().ok()?;
    plan.ranks.variables.insert(NCCL_RAS_ADDR.to_owned(), address.to_string());
    Some(address)
}

/// An address of this machine in the user's variable.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let port = port.parse().ok()?;
    if host == "localhost" { Some((Ipv4Addr::LOCALHOST, port).into()) } else { text.trim().parse().ok() }
}

/// What NCCL says about ranks that are behind or gone, as a sentence; `None` if it does not answer or sees
/// no difference.
pub(super) fn ask(address: SocketAddr) -> Option<String> {
    in_words(&answer(address).ok()?)
}

fn answer(address: SocketAddr) -> std::io::Result<String> {
    let began = Instant::now();
    let mut connection = TcpStream::connect_timeout(&address, LIMIT)?;
    connection.set_write_timeout(Some(LIMIT))?;
    connection.write_all(b"verbose status\n")?;
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    // The server closes the connection after its answer.
    while let Some(left) = LIMIT.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        connection.set_read_timeout(Some(left))?;
        match connection.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) if text.len() as u64 + length as u64 <= LARGEST => {
                text.extend_from_slice(&buffer[..length]);
            }
            // What has come so far may say enough.
            Ok(_) | Err(_) => break,
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn in_words(report: &str) -> Option<String> {
    let late = late(report);
    let gone = gone(report);
    let mut sentences = Vec::new();
    if let Some(most) = late.values().max() {
        let ranks: Vec<String> = late.keys().map(ToString::to_string).collect();
        let (noun, verb) = if ranks.len() == 1 { ("rank", "has") } else { ("ranks", "have") };
        sentences.push(format!(
            "{noun} {} {verb} not started {} that the others have",
            list(&ranks),
            count(usize::try_from(*most).unwrap_or(usize::MAX), "collective operation")
        ));
    }
    if !gone.is_empty() {
        sentences.push(format!("it cannot reach {}", list(&gone)));
    }
    (!sentences.is_empty()).then(|| format!("NCCL says that {}", sentences.join(", and that ")))
}

/// The ranks that are behind, each with the largest number of operations that it lacks. A report has a block
/// for each kind of operation, whose numbers are not comparable with those of another.
fn late(report: &str) -> BTreeMap<usize, u64> {
    let mut late = BTreeMap::new();
    let mut block = Block::default();
    for line in report.lines().map(str::trim) {
        if line.starts_with("Communicator ranks have different") {
            std::mem::take(&mut block).add_to(&mut late);
        } else {
            block.read(line);
        }
    }
    block.add_to(&mut late);
    late
}

/// The numbers of one kind of operation that ranks have started.
#[derive(Default)]
struct Block {
    most: u64,
    named: Vec<(usize, u64)>,
    /// The number of the group whose ranks are listed next.
    group: Option<u64>,
}

impl Block {
    /// NCCL counts the ranks of large groups, and names those of small ones.
    fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "ranks", "have", "launched", "up", "to", "operation", operations] => {
                self.group = operations.parse().ok();
                self.most = self.most.max(self.group.unwrap_or(0));
            }
            [_, "ranks", "have", "not", "launched", "any", "operations"] => self.group = Some(0),
            ["Rank", rank, "has", "launched", "up", "to", "operation", operations, ..] => {
                self.name(rank, operations.parse().ok());
            }
            ["Rank", rank, "has", "not", "launched", "any", "operations", ..] => self.name(rank, Some(0)),
            ["Rank", rank, "--", ..] => self.name(rank, self.group),
            _ => self.group = None,
        }
    }

    fn name(&mut self, rank: &str, operations: Option<u64>) {
        if let Some((rank, operations)) = rank.parse().ok().zip(operations) {
            self.most = self.most.max(operations);
            self.named.push((rank, operations));
        }
    }

    fn add_to(self, late: &mut BTreeMap<usize, u64>) {
        for (rank, operations) in self.named.into_iter().filter(|(_, operations)| *operations < self.most) {
            let lacks = late.entry(rank).or_insert(0);
            *lacks = (*lacks).max(self.most - operations);
        }
    }
}

/// The processes that a report calls dead or missing: `process 3487984 on node1`.
fn gone(report: &str) -> Vec<String> {
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Process", process, "on", "node", node, "managing", ..] => {
                Some(format!("process {process} on {}", node.trim_end_matches(',')))
            }
            _ => None,
        }
    };
    let mut all: Vec<String> = Vec::new();
    for process in report.lines().filter_map(of_line) {
        if !all.contains(&process) {
            all.push(process);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The form of NCCL's answer as its documentation shows it.
    fn report(warnings: &str) -> String {
        format!(
            "NCCL version 2.28.9 compiled with CUDA 13.0\n\nJob summary\n===========\n\n  Nodes  Processes\n\n\
             Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n\
             \x20   0         1         1         4         4         4   RUNNING  MISMATCH\n\nErrors\n======\n\n\
             Warnings\n========\n\n{warnings}"
        )
    }

    #[test]
    fn a_rank_that_is_behind_is_named() {
        let one = report(
            "#0-0 (78db921d1c117b4a) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  \
             3 ranks have launched up to operation 64\n  \
             Rank 2 has launched up to operation 60 -- GPU 2 managed by process 1650386 on node lab-3\n",
        );
        let words = "NCCL says that rank 2 has not started 4 collective operations that the others have";
        assert_eq!(in_words(&one).unwrap(), words);
        let several = report(
            "  26 ranks have launched up to operation 6650\n  2 ranks have launched up to operation 6649\n  \
             Rank 0 -- GPU 0 managed by process 483072 on node lab-3\n  \
             Rank 5 -- GPU 5 managed by process 483077 on node lab-3\n",
        );
        let words =
            "NCCL says that ranks 0 and 5 have not started 1 collective operation that the others have";
        assert_eq!(in_words(&several).unwrap(), words);
    }

    #[test]
    fn kinds_of_operations_are_not_compared_with_each_other() {
        let two = report(
            "  Communicator ranks have different AllReduce operation counts\n  \
             3 ranks have launched up to operation 64\n  \
             Rank 2 has launched up to operation 60 -- GPU 2 managed by process 16 on node lab-3\n  \
             Communicator ranks have different Broadcast operation counts\n  \
             3 ranks have launched up to operation 3\n  \
             Rank 2 has launched up to operation 2 -- GPU 2 managed by process 16 on node lab-3\n",
        );
        let words = "NCCL says that rank 2 has not started 4 collective operations that the others have";
        assert_eq!(in_words(&two).unwrap(), words);
    }

    #[test]
    fn a_rank_that_is_ahead_is_not_accused() {
        let ahead = report(
            "  3 ranks have launched up to operation 60\n  \
             Rank 2 has launched up to operation 61 -- GPU 2 managed by process 1650386 on node lab-3\n",
        );
        assert_eq!(in_words(&ahead), None, "the others are behind, and NCCL does not list them");
        assert_eq!(in_words(&report("")), None);
    }

    #[test]
    fn processes_that_do_not_answer_are_named() {
        let dead = report(
            "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  \
             Process 3487984 on node 172.16.64.213 managing GPU 5\n",
        );
        assert_eq!(
            in_words(&dead).unwrap(),
            "NCCL says that it cannot reach process 3487984 on 172.16.64.213"
        );
    }

    #[test]
    fn an_answer_is_read_until_the_connection_closes() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut question = [0; 15];
            connection.read_exact(&mut question).unwrap();
            assert_eq!(&question, b"verbose status\n");
            let text = report(
                "  3 ranks have launched up to operation 9\n  \
                 Rank 1 has not launched any operations -- GPU 1 managed by process 7 on node lab-3\n",
            );
            for part in text.as_bytes().chunks(50) {
                connection.write_all(part).unwrap();
            }
        });
        let words = "NCCL says that rank 1 has not started 9 collective operations that the others have";
        assert_eq!(ask(address).unwrap(), words);
        server.join().unwrap();
        assert_eq!(ask(address), None, "nobody listens any more");
    }

    #[test]
    fn the_users_address_is_read() {
        assert_eq!(address("localhost:28028"), Some(([127, 0, 0, 1], 28028).into()));
        assert_eq!(address("10.0.0.5:9000"), Some(([10, 0, 0, 5], 9000).into()));
        assert_eq!(address("somewhere"), None);
    }

    proptest! {
        #[test]
        fn any_text_can_be_an_answer(text in "(Rank|Process|ranks|have|has|launched|up|to|operation|--|[0-9]{1,25}| |\n){0,60}") {
            let _ = in_words(&text);
        }
    }
}
