//! What the tests share: a real pickd, simulated engines, the proxy, and an HTTP client that shows
//! each byte as it comes.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Only a hanging test waits so long.
pub const LONG: Duration = Duration::from_secs(60);

/// Waits until something holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn binary(name: &str) -> PathBuf {
    let directory = std::env::var_os("DAEMON_BIN").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/release/bin"),
        PathBuf::from,
    );
    let path = directory.join(name);
    let words = "is not there: build the tree, or set DAEMON_BIN to its bin directory";
    assert!(path.exists(), "{} {words}", path.display());
    path
}

/// A program that ends with the test.
pub struct Process(pub Child);

impl Process {
    fn start(mut command: Command) -> Process {
        // pickd refuses PICKD_ variables that it does not know.
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
        Process(command.spawn().unwrap())
    }

    /// Starts a program that prints "listening on ADDRESS" or PORT, and returns that.
    fn start_listening(mut command: Command) -> (Process, String) {
        command.stdout(Stdio::piped());
        let mut process = Process::start(command);
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").expect("a program that listens");
        (process, address.to_owned())
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as libc::pid_t, signal) }, 0);
    }

    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A simulated engine that serves "m".
pub struct Engine {
    pub process: Process,
    pub address: String,
}

impl Engine {
    /// `speed`: how many times faster than real it goes.
    pub fn start(speed: f64) -> Engine {
        let mut command = Command::new(binary("enginesim"));
        command.args(["--model", "m", "--time-factor", &speed.to_string()]);
        let (process, port) = Process::start_listening(command);
        Engine { process, address: format!("127.0.0.1:{port}") }
    }

    /// Of its metrics page.
    pub fn running(&self) -> f64 {
        let page = ask(&self.address, "GET", "/metrics", &[], "").text();
        let line =
            page.lines().find(|line| line.starts_with("vllm:num_requests_running{")).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}

/// An engine that takes one request after the other, keeps its head and answers with "{}".
pub fn record(requests: usize) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let take = move || {
        let (stream, _) = listener.accept().unwrap();
        let mut from = BufReader::new(&stream);
        let (mut head, mut size) = (String::new(), 0);
        loop {
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            if let Some(told) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                size = told.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head += &line;
        }
        from.read_exact(&mut vec![0; size]).unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
        (&stream).write_all(answer).unwrap();
        head
    };
    (address, std::thread::spawn(move || (0..requests).map(|_| take()).collect()))
}

/// An engine that sends this to each connection, over and over or once, when it was asked.
pub fn odd(sent: Vec<u8>, again: bool) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, sent) = (stream.unwrap(), sent.clone());
            std::thread::spawn(move || {
                // Who is answered before it has asked hangs up.
                let mut asked = [0; 1 << 16];
                let _ = stream.read(&mut asked);
                while stream.write_all(&sent).is_ok() && again {}
            });
        }
    });
    address
}

/// An address where nobody listens.
pub fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// A real pickd that knows these endpoints as engine-0, engine-1 and so on.
pub struct Daemon {
    directory: PathBuf,
    pub process: Process,
}

impl Daemon {
    pub fn start(addresses: &[&str], more: &str) -> Daemon {
        let mut endpoints = String::new();
        for (at, address) in addresses.iter().enumerate() {
            writeln!(endpoints, "  - {{name: engine-{at}, address: \"{address}\", models: [m]}}")
                .unwrap();
        }
        Daemon::start_with(&endpoints, more, &["--profile", "prefix-load"])
    }

    /// With endpoints as they stand in the configuration.
    pub fn start_with(endpoints: &str, more: &str, arguments: &[&str]) -> Daemon {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("pickd-rust-proxy-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let place = directory.display();
        let text = format!(
            "listen: {{socket: {place}/s}}\nstate: {{path: {place}/state, size_mib: 16}}\n\
             scrape: {{enabled: false}}\nlog: {{level: error}}\n{more}\nendpoints:\n{endpoints}"
        );
        std::fs::write(directory.join("pickd.yaml"), text).unwrap();
        let mut command = Command::new(binary("pickd"));
        command.arg("--config").arg(directory.join("pickd.yaml"));
        command.args(arguments);
        let daemon = Daemon { process: Process::start(command), directory };
        eventually("the daemon listens", || {
            pickd::Options::new().socket(daemon.socket()).open().is_ok()
        });
        daemon
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.join("s")
    }

    /// The number behind each `"name":` that pickctl prints, added up.
    fn told(&self, command: &str, name: &str) -> u64 {
        let said = Command::new(binary("pickctl"))
            .arg("--socket")
            .arg(self.socket())
            .args(["--json", command])
            .output()
            .unwrap();
        let text = String::from_utf8(said.stdout).unwrap();
        let key = format!("\"{name}\":");
        assert!(said.status.success() && text.contains(&key), "no {name} in {text}");
        let digits = |rest: &str| {
            let rest = rest.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse::<u64>().unwrap()
        };
        text.split(&key).skip(1).map(digits).sum()
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.told("status", name)
    }

    pub fn in_flight(&self) -> u64 {
        self.told("endpoints", "inflight_requests")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.process.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub struct Proxy {
    pub process: Process,
    pub address: String,
}

impl Proxy {
    pub fn start(daemon: &Daemon, arguments: &[&str]) -> Proxy {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rust-proxy"));
        command.args(["--listen", "127.0.0.1:0", "--threads", "2", "--socket"]);
        command.arg(daemon.socket());
        // However slow this machine is, the daemon answers, and counts.
        command.args(["--pick-timeout", "60000"]).args(arguments);
        let (process, address) = Process::start_listening(command);
        Proxy { process, address }
    }

    pub fn complete(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        ask(&self.address, "POST", "/v1/completions", headers, body)
    }
}

/// A body for /v1/completions.
pub fn completion(prompt: &str, tokens: u32, stream: bool) -> String {
    format!(
        r#"{{"model": "m", "prompt": "{prompt}", "max_tokens": {tokens}, "ignore_eos": true,
            "stream": {stream}{}}}"#,
        if stream { r#", "stream_options": {"include_usage": true}"# } else { "" }
    )
}

/// An answer whose head has come; its body comes piece by piece.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    from: BufReader<TcpStream>,
}

/// Sends a request on a connection of its own.
pub fn ask(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n");
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    write!(text, "Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    // Who refuses may answer before it has read all of it.
    let _ = stream.write_all(text.as_bytes());
    Answer::read(stream)
}

impl Answer {
    fn read(stream: TcpStream) -> Answer {
        let mut from = BufReader::new(stream);
        let mut line = || {
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        };
        let first = line();
        let status = first.split(' ').nth(1).unwrap_or_else(|| panic!("answer {first:?}"));
        let status = status.parse().unwrap();
        let mut headers = Vec::new();
        while let Some((name, value)) = line().split_once(": ") {
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Answer { status, headers, from }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The next piece of a body in chunks; None at its end, an error where it breaks off.
    pub fn piece(&mut self) -> std::io::Result<Option<String>> {
        let broken = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let mut size = String::new();
        self.from.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim_end(), 16).map_err(|_| broken())?;
        let mut piece = vec![0; size + 2];
        self.from.read_exact(&mut piece)?;
        piece.truncate(size);
        Ok((size > 0).then(|| String::from_utf8(piece).unwrap()))
    }

    /// The rest of the body.
    pub fn text(&mut self) -> String {
        let mut text = String::new();
        if self.header("transfer-encoding") == Some("chunked") {
            while let Some(piece) = self.piece().unwrap() {
                text += &piece;
            }
        } else {
            self.from.read_to_string(&mut text).unwrap();
        }
        text
    }
}
