//! The command line: what there is, what it means, and what is refused.

use std::collections::HashMap;
use std::time::Duration;

use lexopt::prelude::*;

const HELP: &str = "\
An HTTP reverse proxy for inference engines that asks pickd where each request goes.
Prints \"listening on ADDRESS\" when it is ready. SIGTERM lets what is under way end.

Usage: rust-proxy [OPTION...]

  --listen ADDRESS           address and port; port 0: any free one      127.0.0.1:8080
  --socket PATH              pickd's socket                  $PICKD_SOCKET, else its own
  --threads N                of the runtime; 0: one for each processor                 0
  --body-max-bytes N         longest request body; longer ones get 413          33554432
  --bodies-max-bytes N       all bodies at once, which the library copies; 503     1073741824
  --attempts N               endpoints that are tried at most, 1 to 8                  3
  --pick-timeout MS          after it the library picks without the daemon           100
  --connect-timeout MS       to an engine                                           1000
  --read-timeout MS          for a request's head, and for each piece of body;     30000
                             a body has ten times that
  --drain-timeout MS         for what is under way at a stop                       30000
  --connections-max N        of callers at once; more wait to be accepted          10000
  --tenant-header NAME       requests that differ in it share no prefix             none
  --objective NAME=PRIORITY  of x-llm-d-inference-objective; may be repeated
  --attribute-header NAME    a header for pickd's plugins; may be repeated
  --help";

/// What the command line said.
pub struct Arguments {
    pub listen: String,
    pub socket: Option<String>,
    pub threads: usize,
    pub body_max_bytes: usize,
    pub bodies_max_bytes: usize,
    pub attempts: u32,
    pub pick_timeout: Duration,
    pub connect_timeout: Duration,
    pub read_timeout: Duration,
    pub drain_timeout: Duration,
    pub connections_max: usize,
    pub tenant_header: Option<String>,
    pub objectives: HashMap<String, i32>,
    pub attribute_headers: Vec<String>,
}

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments {
            listen: "127.0.0.1:8080".to_owned(),
            socket: None,
            threads: 0,
            body_max_bytes: 32 << 20,
            bodies_max_bytes: 1 << 30,
            attempts: 3,
            pick_timeout: Duration::from_millis(100),
            connect_timeout: Duration::from_secs(1),
            read_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
            connections_max: 10_000,
            tenant_header: None,
            objectives: HashMap::new(),
            attribute_headers: Vec::new(),
        }
    }
}

/// None when help was asked for, and printed.
pub fn parse(mut words: lexopt::Parser) -> Result<Option<Arguments>, lexopt::Error> {
    let mut told = Arguments::default();
    while let Some(word) = words.next()? {
        match word {
            Long("listen") => told.listen = words.value()?.string()?,
            Long("socket") => told.socket = Some(words.value()?.string()?),
            Long("threads") => told.threads = number(&mut words, "--threads", 0, 1024)?,
            Long("body-max-bytes") => {
                told.body_max_bytes = number(&mut words, "--body-max-bytes", 1, 1 << 30)?;
            }
            Long("bodies-max-bytes") => {
                told.bodies_max_bytes = number(&mut words, "--bodies-max-bytes", 1, 1 << 40)?;
            }
            Long("attempts") => told.attempts = number(&mut words, "--attempts", 1, 8)? as u32,
            Long("pick-timeout") => told.pick_timeout = duration(&mut words, "--pick-timeout")?,
            Long("connect-timeout") => {
                told.connect_timeout = duration(&mut words, "--connect-timeout")?;
            }
            Long("read-timeout") => told.read_timeout = duration(&mut words, "--read-timeout")?,
            Long("drain-timeout") => told.drain_timeout = duration(&mut words, "--drain-timeout")?,
            Long("connections-max") => {
                told.connections_max = number(&mut words, "--connections-max", 1, 1 << 20)?;
            }
            Long("tenant-header") => told.tenant_header = Some(words.value()?.string()?),
            Long("objective") => {
                let text = words.value()?.string()?;
                let (name, priority) = objective(&text)?;
                told.objectives.insert(name, priority);
            }
            Long("attribute-header") => told.attribute_headers.push(words.value()?.string()?),
            Long("help") | Short('h') => {
                println!("{HELP}");
                return Ok(None);
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(told))
}

fn number(
    words: &mut lexopt::Parser,
    name: &str,
    least: usize,
    most: usize,
) -> Result<usize, lexopt::Error> {
    let value = words.value()?.parse::<usize>()?;
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(format!("{name} {value}: {least} to {most}").into())
}

/// In milliseconds, up to a day.
fn duration(words: &mut lexopt::Parser, name: &str) -> Result<Duration, lexopt::Error> {
    number(words, name, 1, 86_400_000).map(|ms| Duration::from_millis(ms as u64))
}

fn objective(text: &str) -> Result<(String, i32), lexopt::Error> {
    let told = text.split_once('=').and_then(|(name, priority)| {
        let priority = priority.parse::<i16>().ok()?;
        (!name.is_empty()).then(|| (name.to_owned(), priority.into()))
    });
    let wanted = "NAME=PRIORITY is wanted, with a priority of -32768 to 32767";
    told.ok_or_else(|| format!("--objective {text}: {wanted}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Option<Arguments>, lexopt::Error> {
        parse(lexopt::Parser::from_args(words))
    }

    #[test]
    fn what_is_told_is_taken_and_the_rest_has_its_default() {
        let told = parsed(&["--attempts", "2", "--objective=batch=-1", "--read-timeout", "5"]);
        let told = told.unwrap().unwrap();
        assert_eq!((told.attempts, told.objectives["batch"]), (2, -1));
        assert_eq!(told.read_timeout, Duration::from_millis(5));
        assert_eq!(told.listen, "127.0.0.1:8080");
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_would_be_right() {
        let cases: [(&[&str], &str); 5] = [
            (&["--attempts", "9"], "1 to 8"),
            (&["--pick-timeout", "0"], "1 to 86400000"),
            (&["--objective", "batch"], "NAME=PRIORITY is wanted"),
            (&["--objective", "batch=40000"], "-32768 to 32767"),
            (&["--what"], "--what"),
        ];
        for (words, right) in cases {
            let said = parsed(words).err().expect("refused").to_string();
            assert!(said.contains(right), "{said}");
        }
    }

    #[test]
    fn help_names_every_option_once() {
        for name in HELP.split_whitespace().filter(|word| word.starts_with("--")) {
            assert_eq!(HELP.matches(&format!("  {name}")).count(), 1, "{name}");
        }
    }
}
