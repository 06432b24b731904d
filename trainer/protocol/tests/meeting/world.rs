//! The simulated world: a clock, what will happen, and the connections, on which lines arrive in order and late, or
//! not at all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use yolo_protocol::meeting::ToWaiting;

use crate::defects::Saboteur;
use crate::history::{End, History};
use crate::master::Master;
use crate::program::Joiner;
use crate::schedule::{Fault, MasterFault, Schedule, Stranger};

/// When the system reports that the other end is gone, if nothing else does.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long a first line may take.
const GREETING: Duration = Duration::from_secs(5);
/// The time between heartbeats.
const BEAT: Duration = Duration::from_secs(1);

/// Something that will happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happening {
    Starts(usize),
    /// The number tells the tick apart from those that were planned before.
    Tick(usize, u64),
    /// The system's answer to an attempt to connect.
    Answer(usize, bool),
    Planned(usize),
    AtProgram(usize, Item),
    FaultOf(usize),
    Thaws(usize),
    MasterOpens,
    MasterLooks,
    MasterTick(u64),
    MasterPlanned,
    /// What a connection says to the master first; `None` if it is silent.
    Arrives(u64, Option<String>),
    AtMaster(u64, Item),
    MasterBeats(u64),
    MasterFault,
    MasterThaws,
    Knock(Stranger),
}

/// What arrives at the end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Line(String),
    /// The master starts the ranks.
    Start,
    Closed,
}

/// A connection to the master's port.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    /// The program at the other end; `None` for a stranger.
    pub(crate) program: Option<usize>,
    /// Whether the master has it open.
    pub(crate) open: bool,
    /// When the last line arrives at the master, and at the other end.
    arrives: [Duration; 2],
}

pub(crate) struct World<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) saboteur: Saboteur,
    pub(crate) now: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Happening>,
    /// Numbers events.
    last: u64,
    pub(crate) connections: BTreeMap<u64, Connection>,
    pub(crate) master: Master,
    pub(crate) joiners: Vec<Joiner>,
    pub(crate) history: History,
    verbose: bool,
}

impl<'a> World<'a> {
    pub(crate) fn new(schedule: &'a Schedule, defect: Option<crate::Defect>, verbose: bool) -> Self {
        let count = schedule.programs.len();
        let history =
            History { programs: vec![None; count], layouts: vec![None; count], ..History::default() };
        let mut world = Self {
            schedule,
            saboteur: Saboteur::new(defect),
            now: Duration::ZERO,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            last: 0,
            connections: BTreeMap::new(),
            master: Master::default(),
            joiners: schedule.programs.iter().map(|_| Joiner::default()).collect(),
            history,
            verbose,
        };
        world.at(schedule.opens, Happening::MasterOpens);
        world.at(schedule.looks, Happening::MasterLooks);
        for (index, program) in schedule.programs.iter().enumerate() {
            world.at(program.start, Happening::Starts(index));
            let at = match program.fault {
                Some(Fault::Killed(at) | Fault::Gone(at) | Fault::Cut(at) | Fault::Suspended(at, _)) => at,
                _ => continue,
            };
            world.at(at, Happening::FaultOf(index));
        }
        for stranger in &schedule.strangers {
            let (Stranger::Talks(at) | Stranger::Silent(at)) = stranger;
            world.at(*at, Happening::Knock(*stranger));
        }
        if let Some(MasterFault::Killed(at) | MasterFault::Gone(at) | MasterFault::Suspended(at, _)) =
            schedule.master_fault
        {
            world.at(at, Happening::MasterFault);
        }
        world
    }

    /// Plays it to its end.
    pub(crate) fn run(mut self) -> History {
        while let Some(Reverse((at, number))) = self.queue.pop() {
            self.now = at;
            if let Some(happening) = self.events.remove(&number) {
                self.happen(happening);
            }
            // Every program has ended long before, see the properties; what does not end is seen there.
            if at > self.schedule.patience * 10 + KEEPALIVE * 10 || self.is_over() {
                break;
            }
        }
        self.history
    }

    fn is_over(&self) -> bool {
        self.history.master.is_some() && self.history.programs.iter().all(Option::is_some)
    }

    pub(crate) fn at(&mut self, at: Duration, happening: Happening) {
        self.last += 1;
        self.queue.push(Reverse((at, self.last)));
        self.events.insert(self.last, happening);
    }

    pub(crate) fn after(&mut self, time: Duration, happening: Happening) {
        self.at(self.now + time, happening);
    }

    pub(crate) fn log(&mut self, line: impl FnOnce() -> String) {
        if self.verbose {
            let line = format!("{:8.3} {}", self.now.as_secs_f64(), line());
            self.history.log.push(line);
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Starts(program) => self.program_starts(program),
            Happening::Tick(program, number) => self.program_ticks(program, number),
            Happening::Answer(program, reached) => self.program_is_answered(program, reached),
            Happening::Planned(program) => self.program_has_planned(program),
            Happening::AtProgram(program, item) => self.program_hears(program, item),
            Happening::FaultOf(program) => self.program_fault(program),
            Happening::Thaws(program) => self.program_thaws(program),
            Happening::MasterOpens => self.master_opens(),
            Happening::MasterLooks => self.master_looks(),
            Happening::MasterTick(number) => self.master_ticks(number),
            Happening::MasterPlanned => self.master_has_planned(),
            Happening::Arrives(connection, line) => self.arrives(connection, line),
            Happening::AtMaster(connection, item) => self.master_hears(connection, item),
            Happening::MasterBeats(connection) => self.master_beats(connection),
            Happening::MasterFault => self.master_fault(),
            Happening::MasterThaws => self.master_thaws(),
            Happening::Knock(stranger) => self.knock(stranger),
        }
    }

    /// Opens a connection to the master. Its first line is still to come.
    pub(crate) fn connect(&mut self, program: Option<usize>) -> u64 {
        let number = self.connections.len() as u64 + 1;
        let connection = Connection { program, open: true, arrives: [self.now; 2] };
        self.connections.insert(number, connection);
        number
    }

    fn knock(&mut self, stranger: Stranger) {
        if !self.master.listens() {
            return;
        }
        let connection = self.connect(None);
        match stranger {
            Stranger::Talks(_) => {
                let line = "GET / HTTP/1.1".to_owned();
                self.after(self.schedule.latency, Happening::Arrives(connection, Some(line)));
            }
            Stranger::Silent(_) => {
                // The master reads its first line only when it looks.
                let from = self.now.max(self.schedule.looks);
                self.at(from + GREETING, Happening::Arrives(connection, None));
            }
        }
    }

    /// Sends to the master. `first` is whether it is the first line.
    pub(crate) fn send_to_master(&mut self, connection: u64, item: Item, first: bool) {
        let Some(at) = self.arrival(connection, 0) else { return };
        self.at(
            at,
            match (item, first) {
                (Item::Line(line), true) => Happening::Arrives(connection, Some(line)),
                (item, _) => Happening::AtMaster(connection, item),
            },
        );
    }

    /// Sends to the program at the other end.
    pub(crate) fn send_to_program(&mut self, connection: u64, item: Item) {
        let Some(program) = self.connections[&connection].program else { return };
        let Some(at) = self.arrival(connection, 1) else { return };
        self.at(at, Happening::AtProgram(program, item));
    }

    /// Sends a message of the master.
    pub(crate) fn say(&mut self, connection: u64, message: &ToWaiting) {
        self.send_to_program(connection, Item::Line(serde_json::to_string(message).unwrap()));
    }

    /// When a line arrives that is sent now; `None` if it never does.
    fn arrival(&mut self, connection: u64, end: usize) -> Option<Duration> {
        let program = self.connections[&connection].program;
        if program.is_some_and(|program| self.joiners[program].unreachable) || self.master.gone {
            return None;
        }
        let at = self.now + self.schedule.latency;
        let connection = self.connections.get_mut(&connection)?;
        connection.arrives[end] = connection.arrives[end].max(at);
        Some(connection.arrives[end])
    }

    /// The master closes a connection, after what it has sent.
    pub(crate) fn hang_up(&mut self, connection: u64) {
        if std::mem::replace(&mut self.connections.get_mut(&connection).unwrap().open, false) {
            self.send_to_program(connection, Item::Closed);
        }
    }

    /// The other machine or the way to it is gone, and both systems notice it late.
    pub(crate) fn lose(&mut self, connection: u64) {
        self.after(KEEPALIVE, Happening::AtMaster(connection, Item::Closed));
        if let Some(program) = self.connections[&connection].program {
            self.after(KEEPALIVE, Happening::AtProgram(program, Item::Closed));
        }
    }

    fn master_beats(&mut self, connection: u64) {
        if self.history.master.is_some() || !self.connections[&connection].open {
            return;
        }
        if !self.master.is_frozen() {
            self.say(connection, &ToWaiting::Beat);
        }
        self.after(BEAT, Happening::MasterBeats(connection));
    }

    /// The first heartbeat of a connection that the master has accepted.
    pub(crate) fn begin_to_beat(&mut self, connection: u64) {
        self.after(BEAT, Happening::MasterBeats(connection));
    }

    pub(crate) fn end_program(&mut self, program: usize, end: End) {
        self.log(|| format!("program {program} ends: {end:?}"));
        self.history.programs[program] = Some((self.now, end));
    }
}
