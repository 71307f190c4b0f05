//! What the tests share: a real daemon in a directory of its own.
#![allow(dead_code)] // not every test program uses all of it

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pickd::{Client, Code, Options, Pick, Request};

pub const ENGINES: usize = 4;

/// Only a hanging test waits so long.
pub const LONG: Duration = Duration::from_secs(60);

/// A real pickd with endpoints that nobody scrapes.
pub struct Daemon {
    directory: PathBuf,
    process: Option<Child>,
}

/// Where the build tree has its programs: DAEMON_BIN, where that is set.
pub fn binary(name: &str) -> PathBuf {
    let directory = std::env::var_os("DAEMON_BIN").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../build/release/bin"),
        PathBuf::from,
    );
    let path = directory.join(name);
    let words = "is not there: build the tree, or set DAEMON_BIN to its bin directory";
    assert!(path.exists(), "{} {words}", path.display());
    path
}

impl Daemon {
    pub fn start() -> Daemon {
        Daemon::start_with("")
    }

    /// Engines engine-0 to engine-3 serve "m"; `more` is YAML for the configuration.
    pub fn start_with(more: &str) -> Daemon {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("pickd-rust-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let place = directory.display();
        let mut text = format!(
            "listen: {{socket: {place}/s}}\nstate: {{path: {place}/state, size_mib: 16}}\n\
             scrape: {{enabled: false}}\nlog: {{level: warn}}\n{more}\nendpoints:\n"
        );
        for at in 0..ENGINES {
            writeln!(
                text,
                "  - {{name: engine-{at}, address: \"127.0.0.1:{}\", models: [m]}}",
                9000 + at
            )
            .unwrap();
        }
        std::fs::write(directory.join("pickd.yaml"), text).unwrap();
        let mut daemon = Daemon { directory, process: None };
        daemon.run();
        daemon
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.join("s")
    }

    pub fn run(&mut self) {
        // The kernel may keep a killed daemon's socket open for a moment, and it would take
        // connections.
        let _ = std::fs::remove_file(self.socket());
        let mut command = Command::new(binary("pickd"));
        command.arg("--config").arg(self.directory.join("pickd.yaml"));
        // By prefix first: to the cost, a few blocks on an idle engine are worth no waiting.
        command.args(["--profile", "prefix-load"]);
        // The daemon refuses PICKD_ variables that it does not know.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PICKD_")) {
            command.env_remove(name);
        }
        // SAFETY: one system call, which is allowed after fork().
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        self.process = Some(command.spawn().unwrap());
        let deadline = Instant::now() + LONG;
        while let Err(error) = self.options().open() {
            assert!(Instant::now() < deadline, "the daemon does not listen: {error}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn options(&self) -> Options {
        Options::new().socket(self.socket())
    }

    pub fn signal(&self, signal: i32) {
        let process = self.process.as_ref().unwrap().id();
        // SAFETY: a child that was not waited for.
        assert_eq!(unsafe { libc::kill(process as libc::pid_t, signal) }, 0);
    }

    /// Returns when every thread of the daemon stands still.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.process.as_ref().unwrap().id());
        let stands = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('T') // "pid (name) state ..."
        };
        while !std::fs::read_dir(&tasks).unwrap().all(stands) {
            std::thread::yield_now();
        }
    }

    pub fn go_on(&self) {
        self.signal(libc::SIGCONT);
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Requests that hold a reservation, over all endpoints, by the daemon's word.
    pub fn in_flight(&self) -> u64 {
        let said = Command::new(binary("pickctl"))
            .arg("--socket")
            .arg(self.socket())
            .args(["--json", "endpoints"])
            .output()
            .unwrap();
        let text = String::from_utf8(said.stdout).unwrap();
        let words = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success() && text.contains("\"inflight_requests\""), "{text}{words}");
        text.split("\"inflight_requests\":")
            .skip(1)
            .map(|rest| {
                let digits = rest.trim_start();
                let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                digits[..end].parse::<u64>().unwrap()
            })
            .sum()
    }

    /// Waits until nothing is reserved.
    pub fn await_nothing_reserved(&self) {
        let deadline = Instant::now() + LONG;
        loop {
            let left = self.in_flight();
            if left == 0 {
                return;
            }
            assert!(Instant::now() < deadline, "{left} requests hold a reservation");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "left: {}", self.directory.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

pub fn must_pick(client: &Client, request: &Request<'_>) -> Pick {
    client.pick_within(request, LONG).unwrap()
}

pub fn code<T: std::fmt::Debug>(result: Result<T, pickd::Error>) -> Code {
    result.unwrap_err().code()
}

/// Of so many tokens of four bytes, different for each seed.
pub fn prompt(seed: usize, tokens: usize) -> String {
    let mut text = String::new();
    let mut at = 0;
    while text.len() < 4 * tokens {
        write!(text, "{at} of prompt {seed}, ").unwrap();
        at += 1;
    }
    text.truncate(4 * tokens);
    text
}

/// How many entries a directory of /proc/self has.
pub fn own(what: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count()
}
