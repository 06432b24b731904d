//! How ranks meet whose plans were made apart, under another launcher or on several machines: each introduces
//! itself in the store, and rank 0 waits for all, compares them with itself and announces the result. So a
//! rank that does not come, or has other options, is named by all before the first step.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tch_distributed::Store;
use yolo_base::Hint as _;
use yolo_base::env::YOLO_JOIN_SECONDS;
use yolo_base::format::{count, duration, list};
use yolo_base::join;
use yolo_plan::RunPlan;
use yolo_plan::run::Task;

use super::introduction::Introduction;
use super::joining;
use super::rendezvous::{Rendezvous, route_to};
use super::reporter::Reporter;
use crate::error::TrainError;

/// How long ranks wait for each other by default: a scheduler may start them minutes apart.
const WAIT: Duration = Duration::from_secs(900);
/// The pause between two looks into the store.
const PAUSE: Duration = Duration::from_millis(100);
/// When rank 0 first says for whom it waits, and how often afterwards.
const FIRST_NOTE: Duration = Duration::from_secs(10);
const NEXT_NOTE: Duration = Duration::from_secs(60);
/// How much longer the others wait for rank 0, which may give up last.
const MORE: Duration = Duration::from_secs(15);
/// How long rank 0 stays after a difference, so that all can read it.
const FAREWELL: Duration = Duration::from_secs(5);

/// The key under which rank 0 announces the result.
const RESULT: &str = "meeting/result";
/// The key of the task of rank 0.
const TASK: &str = "meeting/task";
/// The key that counts who has read it.
const READ: &str = "meeting/read";
/// What to do about ranks that differ.
const AGREE: &str = "give all ranks the same options, data set and version of yolo";

/// Where the ranks of a run have met.
pub(super) struct Meeting {
    pub(super) store: Box<dyn Store>,
    /// The address of this machine at which the others reach it.
    pub(super) address: String,
}

/// Meets the other ranks. A plan that joins the run of rank 0 gets its task. `key_timeout` is for later uses of the
/// store.
///
/// # Errors
/// When a rank does not come or differs from rank 0.
pub(super) fn meet(
    plan: &mut RunPlan,
    rank: usize,
    key_timeout: Duration,
    reporter: &Reporter,
) -> Result<Meeting, TrainError> {
    let limit = join::limit(WAIT);
    let began = Instant::now();
    let rendezvous = Rendezvous::from_environment()?;
    let one_machine = plan.ranks.on_this_machine() == plan.ranks.world_size;
    let store = rendezvous.shared_store(rank, one_machine, (limit, key_timeout), reporter)?;
    if store.add(&format!("meeting/count/{rank}"), 1)? > 1 {
        return Err(TrainError::new(format!(
            "another process is rank {rank} too, so the launcher's numbers are wrong"
        )));
    }
    let meeting = Waiting { store: &*store, world: plan.ranks.world_size, limit, began, reporter };
    if rank == 0 {
        store.set(TASK, joining::to_text(plan)?.as_bytes())?;
    }
    let problem = match &plan.task {
        Task::Join(join) => {
            let joined = joining::task(&meeting.told_by_rank_0(TASK)?, join, &plan.ranks);
            joined.map(|task| plan.task = task).err()
        }
        _ => None,
    };
    let mut own = Introduction::of(plan, rank, rendezvous.own_address()?)?;
    own.problem = problem.as_ref().map(ToString::to_string);
    store.set(&introduced(rank), own.to_json().to_string().as_bytes())?;
    if let Some(problem) = problem {
        // Rank 0 tells the others.
        let _ = meeting.for_rank_0();
        return Err(problem);
    }
    let result = match rank {
        0 => meeting.for_all(&own)?,
        _ => meeting.for_rank_0()?,
    };
    if let Some(message) = result["error"].as_str() {
        let error = TrainError::new(message);
        return Err(match result["hint"].as_str() {
            Some(hint) => error.with_hint(hint),
            None => error,
        });
    }
    let addresses = result["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let address = reachable(own.address, addresses)?;
    Ok(Meeting { store, address })
}

fn introduced(rank: usize) -> String {
    format!("meeting/rank/{rank}")
}

/// The address at which ranks on other machines reach this one. The route to the master does not tell on the
/// master's machine, where it is loopback; the route to a rank elsewhere does.
fn reachable<'a>(own: String, mut all: impl Iterator<Item = &'a str>) -> Result<String, TrainError> {
    let is_loopback = |address: &str| address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if !is_loopback(&own) {
        return Ok(own);
    }
    all.find(|address| !is_loopback(address)).map_or(Ok(own), |other| route_to(other, 1))
}

/// A rank that waits.
struct Waiting<'a> {
    store: &'a dyn Store,
    world: usize,
    limit: Duration,
    began: Instant,
    reporter: &'a Reporter,
}

impl Waiting<'_> {
    /// Rank 0: waits for all, compares, and announces the result, errors included: the others would wait for it.
    fn for_all(&self, own: &Introduction) -> Result<Value, TrainError> {
        let addresses = self.compared(own);
        let result = match &addresses {
            Ok(addresses) => json!({ "addresses": addresses }),
            Err(error) => json!({ "error": error.to_string(), "hint": error.hint() }),
        };
        self.store.set(RESULT, result.to_string().as_bytes())?;
        if addresses.is_err() {
            self.stay_until_read()?;
        }
        Ok(result)
    }

    /// The addresses of all ranks, once all have come and agree with `own`.
    fn compared(&self, own: &Introduction) -> Result<Vec<String>, TrainError> {
        let mut addresses = vec![own.address.clone()];
        for rank in 1..self.world {
            let other = self.introduction(rank)?;
            if let Some(problem) = &other.problem {
                return Err(TrainError::new(format!("{} cannot join the run: {problem}", other.name())));
            }
            if let Some(difference) = other.difference(own) {
                return Err(TrainError::new(difference).with_hint(AGREE));
            }
            addresses.push(other.address);
        }
        Ok(addresses)
    }

    /// What a rank says about itself, as soon as it does.
    fn introduction(&self, rank: usize) -> Result<Introduction, TrainError> {
        let key = introduced(rank);
        let mut next_note = FIRST_NOTE;
        while !self.store.check(&[&key])? {
            let waited = self.began.elapsed();
            if waited >= self.limit {
                return Err(self.missing()?);
            }
            if waited >= next_note {
                next_note = waited + NEXT_NOTE;
                self.reporter.note(format!(
                    "waiting for {} for {}",
                    ranks(&self.absent()?, self.world),
                    duration(waited.as_secs_f64())
                ));
            }
            std::thread::sleep(PAUSE);
        }
        let text = self.store.get(&key)?;
        let value: Option<Value> = serde_json::from_slice(&text).ok();
        let read = value.as_ref().and_then(Introduction::from_json);
        let unreadable =
            || format!("what rank {rank} says about itself cannot be read: it runs another version of yolo");
        read.ok_or_else(|| TrainError::new(unreadable()).with_hint(AGREE))
    }

    /// The ranks that have not come.
    fn absent(&self) -> Result<Vec<usize>, TrainError> {
        let mut absent = Vec::new();
        for rank in 1..self.world {
            if !self.store.check(&[&introduced(rank)])? {
                absent.push(rank);
            }
        }
        Ok(absent)
    }

    fn missing(&self) -> Result<TrainError, TrainError> {
        let absent = ranks(&self.absent()?, self.world);
        let limit = duration(self.limit.as_secs_f64());
        Ok(TrainError::new(format!("{absent} did not come within {limit}")).with_hint(format!(
            "the launcher's log says whether they were started; {YOLO_JOIN_SECONDS} sets how long ranks wait"
        )))
    }

    /// Waits until all ranks that have come have read the result.
    fn stay_until_read(&self) -> Result<(), TrainError> {
        let present = self.world - 1 - self.absent()?.len();
        let began = Instant::now();
        while self.store.add(READ, 0)? < present as i64 && began.elapsed() < FAREWELL {
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// The others: wait for what rank 0 announces.
    fn for_rank_0(&self) -> Result<Value, TrainError> {
        let text = self.told_by_rank_0(RESULT)?;
        // Rank 0 may have left, and the store with it: the result is known all the same.
        let _ = self.store.add(READ, 1);
        serde_json::from_slice(&text).map_err(|_| TrainError::new("rank 0 runs another version of yolo"))
    }

    /// What rank 0 says under this key, as soon as it does.
    fn told_by_rank_0(&self, key: &str) -> Result<Vec<u8>, TrainError> {
        while !self.store.check(&[key])? {
            if self.began.elapsed() >= self.limit + MORE {
                let came = self.store.check(&[&introduced(0)])?;
                let what = if came { "did not say that all ranks are there" } else { "did not come" };
                let limit = duration(self.limit.as_secs_f64());
                return Err(TrainError::new(format!("rank 0 of {} {what} within {limit}", self.world)));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(self.store.get(key)?)
    }
}

/// `ranks 1 and 3 of 4`.
fn ranks(numbers: &[usize], world: usize) -> String {
    let names: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match numbers {
        [_] => format!("rank {} of {world}", names[0]),
        _ if numbers.len() > 16 => format!("{} of {world}", count(numbers.len(), "rank")),
        _ => format!("ranks {} of {world}", list(&names)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tch_distributed::HashStore;

    use super::*;

    #[test]
    fn ranks_are_named_or_counted() {
        assert_eq!(ranks(&[3], 4), "rank 3 of 4");
        assert_eq!(ranks(&[1, 3], 4), "ranks 1 and 3 of 4");
        assert_eq!(ranks(&(1..20).collect::<Vec<_>>(), 32), "19 ranks of 32");
    }

    #[test]
    fn the_route_to_another_machine_replaces_loopback() {
        let address = |own: &str, all: &[&str]| reachable(own.to_owned(), all.iter().copied()).unwrap();
        assert_eq!(address("10.0.0.7", &["127.0.0.1", "10.0.0.7"]), "10.0.0.7");
        assert_eq!(address("127.0.0.1", &["127.0.0.1", "127.0.0.1"]), "127.0.0.1", "all are here");
    }

    fn waiting<'a>(store: &'a dyn Store, reporter: &'a Reporter) -> Waiting<'a> {
        Waiting { store, world: 3, limit: Duration::from_millis(200), began: Instant::now(), reporter }
    }

    fn introduction(rank: usize, size: &str) -> Introduction {
        let settings = [("--imgsz".to_owned(), size.to_owned())].into();
        let (host, address) = ("lab".to_owned(), "127.0.0.1".to_owned());
        Introduction { rank, host, address, settings, problem: None }
    }

    #[test]
    fn all_ranks_hear_of_an_introduction_that_cannot_be_read() {
        let store = HashStore::new(Duration::from_secs(1)).unwrap();
        let reporter = Reporter::from_environment(1);
        store.set(&introduced(1), b"from the future").unwrap();
        store.add(READ, 9).unwrap();
        let found = waiting(&store, &reporter).for_all(&introduction(0, "64")).unwrap();
        assert!(found["error"].as_str().unwrap().contains("rank 1 says about itself"), "{found}");
        assert_eq!(waiting(&store, &reporter).for_rank_0().unwrap(), found);
    }

    #[test]
    fn all_ranks_get_what_rank_0_found() {
        let came = |store: &HashStore, rank: usize, size: &str| {
            let text = introduction(rank, size).to_json().to_string();
            store.set(&introduced(rank), text.as_bytes()).unwrap();
        };
        let result = |sizes: &[&str]| {
            let store = Arc::new(HashStore::new(Duration::from_secs(1)).unwrap());
            let reporter = Reporter::from_environment(1);
            for (index, size) in sizes.iter().enumerate() {
                came(&store, index + 1, size);
            }
            store.add(READ, 9).unwrap();
            let own = waiting(&*store, &reporter).for_all(&introduction(0, "64")).unwrap();
            assert_eq!(waiting(&*store, &reporter).for_rank_0().unwrap(), own);
            own
        };
        assert_eq!(result(&["64", "64"])["addresses"].as_array().unwrap().len(), 3);
        let different = result(&["64", "32"]);
        assert!(different["error"].as_str().unwrap().contains("rank 2 on lab has --imgsz 32"), "{different}");
        let late = result(&["64"]);
        assert!(late["error"].as_str().unwrap().starts_with("rank 2 of 3 did not come within"), "{late}");
    }
}
