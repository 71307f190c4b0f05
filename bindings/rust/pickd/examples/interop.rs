//! The Rust client of tests/interop_test.py: runs the steps of tests/interop/scenario.txt, which
//! says what they mean.
//!
//!     interop SOCKET SCRIPT REPETITIONS blocking|tokio
//!
//! Prints "ready", waits for a line, runs the script so often and prints a line for each step.
//! With "tokio" eight repetitions run at once.
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use pickd::{AsyncClient, Client, Error, Options, Pick, Report, ReportKind, Request, Ticket};

const AT_ONCE: usize = 8;
const LONGEST: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A pick, or with a kind a report.
struct Step {
    name: String,
    kind: Option<(String, ReportKind)>,
    fields: Vec<(String, String)>,
    text: Vec<Vec<u8>>,
    ids: Vec<u32>,
    extras: Vec<(usize, Vec<u8>)>,
    attributes: Vec<(String, String)>,
    subset: Option<Vec<String>>,
}

fn numbers(seed: &str) -> Result<impl Iterator<Item = u32>, Failure> {
    let seed: u32 = seed.parse()?;
    let next = |x: &u32| Some(x.wrapping_mul(1_103_515_245).wrapping_add(12345));
    Ok(std::iter::successors(Some(seed), next).skip(1))
}

fn read_text(value: &str) -> Result<Vec<Vec<u8>>, Failure> {
    let parts: Vec<&str> = value.split(':').collect();
    let size = parts[1].parse()?;
    let bytes: Vec<u8> =
        numbers(parts[0])?.take(size).map(|x| b'a' + ((x >> 16) % 26) as u8).collect();
    let mut places = vec![0];
    for cut in parts.get(2).map_or("", |cuts| cuts).split(',').filter(|cut| !cut.is_empty()) {
        places.push(cut.parse()?);
    }
    places.push(size);
    Ok(places.windows(2).map(|ends| bytes[ends[0]..ends[1]].to_vec()).collect())
}

fn kind_of(word: &str) -> Result<ReportKind, Failure> {
    Ok(match word {
        "first_token" => ReportKind::FirstToken,
        "progress" => ReportKind::Progress,
        "done" => ReportKind::Done,
        "failed" => ReportKind::Failed,
        "fallback" => ReportKind::Fallback,
        "cancelled" => ReportKind::Cancelled,
        other => return Err(format!("no kind {other}").into()),
    })
}

fn read_step(line: &str) -> Result<Step, Failure> {
    let mut words = line.split_whitespace();
    let is_pick = words.next() == Some("pick");
    let mut step = Step {
        name: words.next().ok_or("no name")?.to_owned(),
        kind: None,
        fields: Vec::new(),
        text: Vec::new(),
        ids: Vec::new(),
        extras: Vec::new(),
        attributes: Vec::new(),
        subset: None,
    };
    if !is_pick {
        let kind = words.next().ok_or("no kind")?;
        step.kind = Some((kind.to_owned(), kind_of(kind)?));
    }
    for word in words {
        let (key, value) = word.split_once('=').ok_or("no value")?;
        let (first, second) = value.split_once(':').unwrap_or((value, ""));
        match key {
            "text" => step.text = read_text(value)?,
            "ids" => step.ids = numbers(first)?.take(second.parse()?).map(|x| x >> 8).collect(),
            "extra" => {
                let digest = numbers(second)?.take(32).map(|x| (x >> 16) as u8).collect();
                step.extras.push((first.parse()?, digest));
            }
            "attribute" => step.attributes.push((first.to_owned(), second.to_owned())),
            "subset" => {
                let names = value.split(',').filter(|name| !name.is_empty());
                step.subset = Some(names.map(str::to_owned).collect());
            }
            _ => step.fields.push((key.to_owned(), value.to_owned())),
        }
    }
    Ok(step)
}

fn read_script(path: &str) -> Result<Vec<Step>, Failure> {
    let script = std::fs::read_to_string(path)?;
    let lines = script.lines().filter(|line| !line.starts_with('#'));
    let asked = lines.map(|line| line.split("->").next().unwrap_or("").trim());
    asked.filter(|line| !line.is_empty()).map(read_step).collect()
}

fn milliseconds(value: &str) -> Result<Duration, Failure> {
    Ok(Duration::from_secs_f64(value.parse::<f64>()? / 1000.0))
}

fn request_of(step: &Step) -> Result<Request<'_>, Failure> {
    let mut request = Request::new();
    for segment in &step.text {
        request = request.text(segment);
    }
    if !step.ids.is_empty() {
        request = request.token_ids(&step.ids);
    }
    for (offset, digest) in &step.extras {
        request = request.extra(*offset, digest);
    }
    for (key, value) in &step.attributes {
        request = request.attribute(key, value);
    }
    if let Some(subset) = &step.subset {
        request = request.subset(subset);
    }
    for (key, value) in &step.fields {
        request = match key.as_str() {
            "model" => request.model(value),
            "adapter" => request.adapter(value),
            "salt" => request.salt(value),
            "session" => request.session_id(value),
            "fairness" => request.fairness_id(value),
            "request" => request.request_id(value),
            "prompt_tokens" => request.prompt_tokens(value.parse()?),
            "expected" => request.expected_output_tokens(value.parse()?),
            "endpoints_max" => request.endpoints_max(value.parse()?),
            "priority" => request.priority(value.parse()?),
            "slo_ttft_ms" => request.slo_ttft(milliseconds(value)?),
            "slo_itl_ms" => request.slo_itl(milliseconds(value)?),
            "stream" => request.stream(true),
            "dry_run" => request.dry_run(true),
            other => return Err(format!("no field {other}").into()),
        };
    }
    Ok(request)
}

fn report_of(step: &Step, kind: ReportKind, ticket: Ticket) -> Result<Report, Failure> {
    let mut report = Report::new(ticket, kind);
    for (key, value) in &step.fields {
        report = match key.as_str() {
            "prompt" => report.prompt_tokens(value.parse()?),
            "cached" => report.cached_tokens(value.parse()?),
            "output" => report.output_tokens(value.parse()?),
            "endpoint" => Report { endpoint: Some(value.as_str().into()), ..report },
            other => return Err(format!("no field {other}").into()),
        };
    }
    Ok(report)
}

/// One run of the script: what was answered until now.
#[derive(Default)]
struct Run {
    tickets: HashMap<String, Ticket>,
    said: String,
}

impl Run {
    fn picked(&mut self, step: &Step, answer: Result<Pick, Error>) -> Result<(), Failure> {
        let pick = match answer {
            Ok(pick) => pick,
            Err(error) => {
                writeln!(self.said, "pick {} status={}", step.name, -error.code().errno())?;
                return Ok(());
            }
        };
        let matched = pick.endpoints().next().map_or(0, |winner| winner.match_tokens);
        writeln!(
            self.said,
            "pick {} status=0 winner={} address={} match={} prompt_tokens={} cut={} degraded={} \
             endpoints={}",
            step.name,
            pick.name(),
            pick.address(),
            matched,
            pick.prompt_tokens(),
            u8::from(pick.is_cut()),
            u8::from(pick.is_degraded()),
            pick.endpoints().len()
        )?;
        self.tickets.insert(step.name.clone(), pick.ticket());
        Ok(())
    }

    fn reported(
        &mut self,
        step: &Step,
        word: &str,
        told: Result<(), Error>,
    ) -> Result<(), Failure> {
        let status = told.map_or_else(|error| -error.code().errno(), |()| 0);
        writeln!(self.said, "report {} {} status={}", step.name, word, status)?;
        Ok(())
    }

    fn report(&self, step: &Step, kind: ReportKind) -> Result<Report, Failure> {
        report_of(step, kind, self.tickets.get(&step.name).copied().unwrap_or_default())
    }
}

fn run_blocking(client: &Client, steps: &[Step]) -> Result<String, Failure> {
    let mut run = Run::default();
    for step in steps {
        match &step.kind {
            None => run.picked(step, client.pick(&request_of(step)?))?,
            Some((word, kind)) => {
                let told = client.report_and_wait(&run.report(step, *kind)?, LONGEST);
                run.reported(step, word, told)?;
            }
        }
    }
    Ok(run.said)
}

async fn run_async(client: &AsyncClient, steps: &[Step]) -> Result<String, Failure> {
    let mut run = Run::default();
    for step in steps {
        match &step.kind {
            None => {
                let answer = client.pick(&request_of(step)?).await;
                run.picked(step, answer)?;
            }
            Some((word, kind)) => {
                let report = run.report(step, *kind)?;
                let told = client.report_and_wait(&report, LONGEST).await;
                run.reported(step, word, told)?;
            }
        }
    }
    Ok(run.said)
}

fn ready() -> Result<(), Failure> {
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

async fn by_tasks(options: Options, steps: Vec<Step>, repetitions: usize) -> Result<(), Failure> {
    let client = Arc::new(options.open_async().await?);
    ready()?;
    let steps = Arc::new(steps);
    let left = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    let mut tasks = Vec::new();
    for _ in 0..repetitions {
        let (client, steps, left) = (client.clone(), steps.clone(), left.clone());
        tasks.push(tokio::spawn(async move {
            let _turn = left.acquire().await?;
            run_async(&client, &steps).await
        }));
    }
    for task in tasks {
        print!("{}", task.await??);
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, script, repetitions, mode] = arguments.as_slice() else {
        return Err("usage: interop SOCKET SCRIPT REPETITIONS blocking|tokio".into());
    };
    let (steps, repetitions) = (read_script(script)?, repetitions.parse()?);
    let options = Options::new().socket(socket);
    if mode == "tokio" {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        return runtime.block_on(by_tasks(options, steps, repetitions));
    }
    let client = options.open()?;
    ready()?;
    for _ in 0..repetitions {
        print!("{}", run_blocking(&client, &steps)?);
    }
    Ok(())
}
