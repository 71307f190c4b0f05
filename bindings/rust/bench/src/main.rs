//! Compares the Rust client with an event loop in C: CPU time of a pick and its report, at equal
//! numbers outstanding, in turns in one process against one daemon of its own. `--help` says more.

use std::ffi::{c_char, c_int, CString};
use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pickd::{AsyncClient, Options, Report, Request};
use pickd_sys as sys;

const USAGE: &str = "\
usage: cargo run --release -p pickd-client-bench -- [OPTION...]
  --outstanding N,...  numbers of picks outstanding; 1,32,1000
  --seconds S          length of one slice; 1
  --rounds N           slices of each; the medians are shown; 5
  --threads N          threads of the Rust runtime; 1: that of the caller alone, as in C
  --daemon PATH        the daemon's program; ../../build/release/bin/pickd
  --spin US            how long a Rust pick that is alone looks for its answer; 20
  --only rust|c        leaves the other out, for a profile
  --read               the Rust tasks read the winner's address and name of each pick";

const ENDPOINTS: usize = 16;
const PROMPTS: usize = 1000;
const PROMPT_TOKENS: usize = 1000;

/// As in loop.h.
#[repr(C)]
struct BenchPrompt {
    data: *const c_char,
    size: usize,
}

extern "C" {
    fn bench_loop(
        client: *mut sys::pickd_client,
        outstanding: u32,
        prompts: *const BenchPrompt,
        prompt_count: u32,
        duration_ns: i64,
    ) -> i64;
}

struct Arguments {
    outstanding: Vec<u32>,
    slice: Duration,
    rounds: usize,
    threads: usize,
    daemon: String,
    spin: Duration,
    read: bool,
    only: String,
}

fn arguments() -> Result<Arguments, Box<dyn std::error::Error>> {
    let mut told = Arguments {
        outstanding: vec![1, 32, 1000],
        slice: Duration::from_secs(1),
        rounds: 5,
        threads: 1,
        daemon: "../../build/release/bin/pickd".into(),
        spin: Duration::from_micros(20),
        read: false,
        only: String::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--read" {
            told.read = true;
            continue;
        }
        let value = words.next().ok_or(USAGE)?;
        match word.as_str() {
            "--outstanding" => {
                told.outstanding = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            "--seconds" => told.slice = Duration::try_from_secs_f64(value.parse()?)?,
            "--rounds" => told.rounds = value.parse()?,
            "--threads" => told.threads = value.parse()?,
            "--daemon" => told.daemon = value,
            "--spin" => told.spin = Duration::from_micros(value.parse()?),
            "--only" => told.only = value,
            _ => return Err(USAGE.into()),
        }
    }
    Ok(told)
}

fn main() {
    if let Err(error) = arguments().and_then(run) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run(told: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let daemon = Daemon::start(&told.daemon)?;
    let socket = CString::new(daemon.socket.clone())?;
    let in_c = open_in_c(&socket)?;
    let runtime = if told.threads == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(told.threads).enable_all().build()?
    };
    let options = Options::new().socket(&daemon.socket).spin(told.spin);
    let in_rust = runtime.block_on(options.open_async())?;
    let prompts = Arc::new(make_prompts());
    let raw: Vec<BenchPrompt> = prompts
        .iter()
        .map(|text| BenchPrompt { data: text.as_ptr().cast(), size: text.len() })
        .collect();

    println!(
        "            ------- CPU us a pick ------   ---- picks/s ----   - mean us to answer -"
    );
    println!("outstanding        C     Rust   Rust - C          C     Rust           C     Rust");
    for &count in &told.outstanding {
        let (mut c, mut rust) = (Samples::default(), Samples::default());
        for _ in 0..told.rounds {
            let nanoseconds = i64::try_from(told.slice.as_nanos())?;
            c.add(|| {
                if told.only == "rust" {
                    return Ok(1);
                }
                // SAFETY: the client is open, the prompts are good for the call.
                let picks =
                    unsafe { bench_loop(in_c, count, raw.as_ptr(), PROMPTS as u32, nanoseconds) };
                u64::try_from(picks).map_err(|_| format!("the loop in C: error {picks}"))
            })?;
            rust.add(|| {
                if told.only == "c" {
                    return Ok(1);
                }
                let tasks = run_tasks(&in_rust, count, &prompts, told.slice, told.read);
                runtime.block_on(tasks).map_err(|error| error.to_string())
            })?;
        }
        println!(
            "{count:11} {:8.3} {:8.3}   {:8.3}   {:8.0} {:8.0}    {:8.1} {:8.1}",
            c.cpu_us(),
            rust.cpu_us(),
            rust.cpu_us() - c.cpu_us(),
            c.rate(),
            rust.rate(),
            1e6 * f64::from(count) / c.rate(), // so many under way, so many a second
            1e6 * f64::from(count) / rust.rate(),
        );
    }
    drop(in_rust);
    // SAFETY: nobody uses it any more.
    unsafe { sys::pickd_close(in_c) };
    Ok(())
}

/// What bench_loop is, by tasks.
async fn run_tasks(
    client: &AsyncClient,
    outstanding: u32,
    prompts: &Arc<Vec<String>>,
    duration: Duration,
    read: bool,
) -> Result<u64, pickd::Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let picks = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..outstanding as usize {
        let (client, prompts) = (client.clone(), prompts.clone());
        let (stop, picks) = (stop.clone(), picks.clone());
        tasks.spawn(async move {
            let (mut next, mut done, mut bytes) = (at, 0, 0);
            // Partner: the store after the sleep; only that it is seen some time matters.
            while !stop.load(Ordering::Relaxed) {
                let request = Request::new().model("m").text(&prompts[next % PROMPTS]);
                let pick = client.pick(&request).await?;
                if read {
                    bytes += pick.address().len() + pick.name().len();
                }
                client.report(&Report::done(pick.ticket()))?;
                next += outstanding as usize;
                done += 1;
            }
            std::hint::black_box(bytes);
            picks.fetch_add(done, Ordering::Relaxed); // read after the tasks were joined
            Ok::<_, pickd::Error>(())
        });
    }
    tokio::time::sleep(duration).await;
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no task panics")?;
    }
    Ok(picks.load(Ordering::Relaxed))
}

// ---- Measuring ----------------------------------------------------------------------------------

/// CPU microseconds of this process for a pick, and picks a second.
#[derive(Default)]
struct Samples(Vec<(f64, f64)>);

impl Samples {
    fn add(&mut self, slice: impl FnOnce() -> Result<u64, String>) -> Result<(), String> {
        let (from, cpu_from) = (Instant::now(), cpu_us());
        let picks = slice()? as f64;
        self.0.push(((cpu_us() - cpu_from) / picks, picks / from.elapsed().as_secs_f64()));
        Ok(())
    }

    fn median(&self, of: impl Fn(&(f64, f64)) -> f64) -> f64 {
        let mut values: Vec<f64> = self.0.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    fn cpu_us(&self) -> f64 {
        self.median(|one| one.0)
    }

    fn rate(&self) -> f64 {
        self.median(|one| one.1)
    }
}

fn cpu_us() -> f64 {
    // SAFETY: all zeros is a value of the struct, which is then filled.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    us(usage.ru_utime) + us(usage.ru_stime)
}

// ---- What is measured with ----------------------------------------------------------------------

fn make_prompts() -> Vec<String> {
    (0..PROMPTS)
        .map(|at| {
            let mut text = String::new();
            while text.len() < 4 * PROMPT_TOKENS {
                let said = text.len();
                write!(text, "prompt {at} says {said}; ").expect("a string takes all");
            }
            text.truncate(4 * PROMPT_TOKENS);
            text
        })
        .collect()
}

fn open_in_c(socket: &CString) -> Result<*mut sys::pickd_client, String> {
    let options = sys::pickd_options {
        struct_size: std::mem::size_of::<sys::pickd_options>(),
        socket_path: socket.as_ptr(),
        name: std::ptr::null(),
        keys_max: 0,
        channels_max: 0,
        spin_us: 0,
        connect_timeout_ms: 0,
        flags: 0,
        error: std::ptr::null_mut(),
        error_size: 0,
    };
    let mut client = std::ptr::null_mut();
    // SAFETY: both are good for the call.
    let code: c_int = unsafe { sys::pickd_open(&options, &mut client) };
    (code == 0).then_some(client).ok_or_else(|| format!("pickd_open: error {code}"))
}

struct Daemon {
    directory: std::path::PathBuf,
    socket: String,
    process: Child,
}

impl Daemon {
    fn start(program: &str) -> Result<Daemon, Box<dyn std::error::Error>> {
        let directory =
            std::env::temp_dir().join(format!("pickd-rust-bench-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let place = directory.display();
        let mut text = format!(
            "listen: {{socket: {place}/s}}\nstate: {{path: {place}/state, size_mib: 64}}\n\
             scrape: {{enabled: false}}\nworkers: {{count: 1}}\nlog: {{level: warn}}\nendpoints:\n"
        );
        for at in 0..ENDPOINTS {
            let port = 9000 + at;
            writeln!(text, "  - {{name: engine-{at}, address: \"127.0.0.1:{port}\"}}")?;
        }
        std::fs::write(directory.join("pickd.yaml"), text)?;
        let mut command = Command::new(program);
        command.arg("--config").arg(directory.join("pickd.yaml"));
        // SAFETY: one system call, which is allowed after fork().
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let process = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let socket = format!("{place}/s");
        let daemon = Daemon { directory, socket, process };
        let until = Instant::now() + Duration::from_secs(20);
        while let Err(error) = Options::new().socket(&daemon.socket).open() {
            if Instant::now() > until {
                return Err(format!("the daemon does not listen: {error}").into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
