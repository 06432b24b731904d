//! Machines as network namespaces that a bridge connects. They need root and `ip`; where one is missing, tests
//! print that they are skipped.

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts networks, whose names and addresses must differ.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Machines on one network. All is removed when this value is dropped.
pub(crate) struct Network {
    name: String,
    subnet: usize,
    machines: usize,
}

impl Network {
    /// A network of machines; `None`, with a line that says so, where it cannot be made.
    pub(crate) fn of(machines: usize) -> Option<Self> {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // The name of an interface has 15 letters at most.
        let name = format!("y{:x}{count}", std::process::id() % 0xfffff);
        let network = Self { name, subnet: (std::process::id() as usize + count) % 250, machines };
        let made = network.make();
        if !made {
            println!("skipped: network namespaces need root and the program ip");
        }
        made.then_some(network)
    }

    fn make(&self) -> bool {
        let name = &self.name;
        let switch = format!("{name}s");
        let mut commands = vec![
            format!("netns add {switch}"),
            format!("-n {switch} link add br0 type bridge"),
            format!("-n {switch} link set br0 up"),
        ];
        for number in 0..self.machines {
            let (space, plug) = (self.space(number), format!("p{number}"));
            commands.extend([
                format!("netns add {space}"),
                format!("-n {space} link set lo up"),
                format!("-n {space} link add net0 type veth peer name {plug} netns {switch}"),
                format!("-n {switch} link set {plug} master br0 up"),
                format!("-n {space} addr add {}/24 dev net0", self.address(number)),
                format!("-n {space} link set net0 up"),
            ]);
        }
        commands.iter().all(|command| ip(command))
    }

    fn space(&self, number: usize) -> String {
        format!("{}m{number}", self.name)
    }

    /// The address of a machine.
    pub(crate) fn address(&self, number: usize) -> String {
        format!("10.77.{}.{}", self.subnet, number + 1)
    }

    /// A program on a machine. Its process is the program itself.
    pub(crate) fn command(&self, number: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(number), program]);
        command
    }

    /// Whether something listens on this port of a machine.
    pub(crate) fn listens(&self, number: usize, port: u16) -> bool {
        let output = self.command(number, "cat").arg("/proc/net/tcp").output().unwrap();
        // 0A is the state LISTEN.
        let wanted = format!(":{port:04X} 00000000:0000 0A");
        String::from_utf8_lossy(&output.stdout).contains(&wanted)
    }

    /// Pulls the plug of a machine.
    pub(crate) fn cut(&self, number: usize) {
        assert!(ip(&format!("-n {}s link set p{number} down", self.name)));
    }

    /// Packets from one machine to another disappear.
    pub(crate) fn blackhole(&self, from: usize, to: usize) {
        assert!(ip(&format!("-n {} route add blackhole {}/32", self.space(from), self.address(to))));
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for number in 0..self.machines {
            ip(&format!("netns del {}", self.space(number)));
        }
        ip(&format!("netns del {}s", self.name));
    }
}

fn ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
