//! The proxy between callers and simulated engines, with a real pickd: what the caller sees, what
//! the engine does, and what the daemon counts.

mod common;

use common::{ask, completion, eventually, nobody, Daemon, Engine, Proxy};

fn served_by(answer: &common::Answer) -> String {
    answer.header("x-pickd-endpoint").unwrap().to_owned()
}

#[test]
fn an_answer_passes_with_its_usage_reported_and_the_next_turn_goes_to_the_same_engine() {
    let engines = [Engine::start(100.0), Engine::start(100.0), Engine::start(100.0)];
    let addresses = engines.each_ref().map(|engine| engine.address.as_str());
    let daemon = Daemon::start(&addresses, "");
    let proxy = Proxy::start(&daemon, &[]);
    let prompt = "Once upon a time. ".repeat(200);
    let mut first = proxy.complete(&[], &completion(&prompt, 20, false));
    assert_eq!(first.status, 200);
    let text = first.text();
    assert!(text.contains("\"completion_tokens\":20"), "{text}");
    for _ in 0..3 {
        let mut next = proxy.complete(&[], &completion(&format!("{prompt} And then"), 20, false));
        assert_eq!(served_by(&next), served_by(&first));
        next.text();
    }
    eventually("all four are done", || daemon.counter("pickd_requests_done_total") == 4);
    assert_eq!(daemon.counter("pickd_output_tokens_total"), 80);
    assert!(daemon.counter("pickd_reported_prompt_tokens_total") >= 4 * 900);
    assert!(daemon.counter("pickd_reported_cached_tokens_total") >= 3 * 800);
    assert_eq!(daemon.in_flight(), 0);
}

#[test]
fn what_is_no_completion_passes_too() {
    let engine = Engine::start(100.0);
    let daemon = Daemon::start(&[&engine.address], "");
    let proxy = Proxy::start(&daemon, &[]);
    let mut models = ask(&proxy.address, "GET", "/v1/models?x=1", &[], "");
    assert_eq!(models.status, 200);
    assert!(models.text().contains("\"m\""));
    let mut nothing = ask(&proxy.address, "POST", "/v1/completions", &[], "{\"model\": ");
    assert_eq!(nothing.status, 400); // the engine's word, not the proxy's
    assert!(nothing.header("x-pickd-endpoint").is_some());
    nothing.text();
    // A caller cannot make an engine look as if it had failed.
    let long = format!("/v1/models?x={}", "y".repeat(65_500));
    for (method, path, status) in [("CONNECT", "engine:80", 405), ("GET", long.as_str(), 502)] {
        let mut answer = ask(&proxy.address, method, path, &[], "");
        assert_eq!(answer.status, status, "{method}");
        answer.text();
    }
    eventually("nothing is reserved", || daemon.in_flight() == 0);
    assert_eq!(daemon.counter("pickd_requests_failed_total"), 0);
}

const SPLIT: &str = "scheduling:
  apiVersion: llm-d.ai/v1alpha1
  kind: EndpointPickerConfig
  plugins:
    - {type: always-disagg-pd-decider}
    - {type: always-disagg-multimodal-decider}
    - type: disagg-profile-handler
      parameters:
        deciders: {prefill: always-disagg-pd-decider, encode: always-disagg-multimodal-decider}
    - {type: encode-filter}
    - {type: prefill-filter}
    - {type: decode-filter}
    - {type: max-score-picker}
  schedulingProfiles:
    - {name: encode, plugins: [{pluginRef: encode-filter}, {pluginRef: max-score-picker}]}
    - {name: prefill, plugins: [{pluginRef: prefill-filter}, {pluginRef: max-score-picker}]}
    - {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: max-score-picker}]}";

#[test]
fn the_engine_hears_who_computes_the_prompt_and_who_encodes_its_images() {
    let (address, asked) = common::record(2);
    let endpoints = format!(
        "  - {{name: decode, address: \"{address}\", role: decode}}
  - {{name: prefill, address: \"http://127.0.0.1:9100/\", role: prefill}}
  - {{name: encode, address: \"127.0.0.1:9300\", role: encode}}
"
    );
    let daemon = Daemon::start_with(&endpoints, SPLIT, &[]);
    let proxy = Proxy::start(&daemon, &[]);
    let image = r#", {"type": "image_url", "image_url": {"url": "https://images.example/1"}}"#;
    let long = "Once upon a time. ".repeat(200);
    let forged = [("x-prefiller-host-port", "evil:1"), ("x-encoder-hosts-ports", "evil:1")];
    for part in [image, ""] {
        let body = format!(
            r#"{{"model": "m", "messages": [{{"role": "user", "content": [
                {{"type": "text", "text": "{long}"}}{part}]}}]}}"#
        );
        let path = "/v1/chat/completions";
        assert_eq!(ask(&proxy.address, "POST", path, &forged, &body).text(), "{}");
    }
    let heads = asked.join().unwrap();
    for (head, encode) in heads.iter().zip([Some("127.0.0.1:9300"), None]) {
        let told = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        assert_eq!(told("x-prefiller-host-port: "), Some("127.0.0.1:9100"), "{head}");
        assert_eq!(told("x-encoder-hosts-ports: "), encode, "{head}");
    }
}

#[test]
fn a_target_that_is_no_path_is_refused_before_any_engine_is_asked() {
    let engine = Engine::start(100.0);
    let daemon = Daemon::start(&[&engine.address], "");
    let proxy = Proxy::start(&daemon, &[]);
    assert_eq!(ask(&proxy.address, "OPTIONS", "*", &[], "").status, 400);
    assert_eq!(proxy.complete(&[], &completion("Hello", 1, false)).status, 200);
    eventually("that is done", || daemon.counter("pickd_requests_done_total") == 1);
    assert_eq!((daemon.counter("pickd_picks_total"), daemon.in_flight()), (1, 0));
}

#[test]
fn an_engine_that_sends_no_real_answer_costs_no_more_than_its_own_request() {
    let endless = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(100);
    let switching = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n".to_vec();
    for (sent, again) in [(endless, true), (switching, false)] {
        let daemon = Daemon::start(&[&common::odd(sent, again)], "");
        let proxy = Proxy::start(&daemon, &[]);
        for _ in 0..4 {
            let mut answer = proxy.complete(&[], &completion("Hello", 1, false));
            let text = answer.text();
            assert_eq!(answer.status, 502, "{text}");
        }
        eventually("all have failed", || daemon.counter("pickd_requests_failed_total") == 4);
        assert_eq!(daemon.in_flight(), 0);
    }
}

#[test]
fn an_answer_has_the_callers_version_whatever_the_engine_speaks() {
    let old = b"HTTP/1.0 200 OK\r\n\r\nhello".to_vec();
    let daemon = Daemon::start(&[&common::odd(old, false)], "");
    let proxy = Proxy::start(&daemon, &[]);
    let mut answer = proxy.complete(&[], &completion("Hello", 1, false));
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.text(), "hello");
}

#[test]
fn bodies_that_are_held_together_are_bounded() {
    let engine = Engine::start(1.0);
    let daemon = Daemon::start(&[&engine.address], "");
    let proxy = Proxy::start(&daemon, &["--bodies-max-bytes", "8192"]);
    let long = completion(&"long ".repeat(1000), 5000, true);
    let mut under_way = proxy.complete(&[], &long);
    under_way.piece().unwrap().unwrap();
    assert_eq!(proxy.complete(&[], &long).status, 503);
    drop(under_way);
    eventually("there is room again", || proxy.complete(&[], &long).status == 200);
}

#[test]
fn a_stream_passes_piece_by_piece_and_its_first_token_is_reported_at_once() {
    let engine = Engine::start(1.0);
    let daemon = Daemon::start(&[&engine.address], "");
    let proxy = Proxy::start(&daemon, &[]);
    // It would take the engine the better part of a minute.
    let mut answer = proxy.complete(&[], &completion("Hello", 5000, true));
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let first = answer.piece().unwrap().unwrap();
    assert!(first.starts_with("data: "), "{first}");
    assert_eq!((engine.running(), daemon.in_flight()), (1.0, 1));
    eventually("the first token is told", || daemon.counter("pickd_reports_total") >= 1);
    assert_eq!(daemon.in_flight(), 1);
    drop(answer);
    let text = proxy.complete(&[], &completion("Hello", 20, true)).text();
    assert!(text.trim_end().ends_with("data: [DONE]"), "{text}");
    eventually("it is done", || daemon.counter("pickd_requests_done_total") == 1);
    assert_eq!(daemon.counter("pickd_output_tokens_total"), 20);
}

#[test]
fn a_caller_that_goes_away_ends_the_engines_work_and_says_nothing_of_the_engine() {
    let engine = Engine::start(1.0);
    let daemon = Daemon::start(&[&engine.address], "");
    let proxy = Proxy::start(&daemon, &[]);
    // In the middle of a stream, and before the head of an answer that is not one.
    let mut streamed = proxy.complete(&[], &completion("Hello", 5000, true));
    streamed.piece().unwrap().unwrap();
    drop(streamed);
    let waiting = std::net::TcpStream::connect(&proxy.address).unwrap();
    let body = completion("Good bye", 5000, false);
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    std::io::Write::write_all(&mut &waiting, (head + &body).as_bytes()).unwrap();
    eventually("the second is at work", || daemon.in_flight() == 1 && engine.running() == 1.0);
    drop(waiting);
    eventually("the engine has stopped", || engine.running() == 0.0);
    eventually("nothing is reserved", || daemon.in_flight() == 0);
    assert_eq!(daemon.counter("pickd_requests_failed_total"), 0);
    assert_eq!(daemon.counter("pickd_requests_done_total"), 0);
}

#[test]
fn a_request_goes_on_to_a_fallback_when_an_engine_does_not_answer() {
    let engine = Engine::start(100.0);
    let (dead, also_dead) = (nobody(), nobody());
    let daemon = Daemon::start(&[&dead, &also_dead, &engine.address], "");
    let proxy = Proxy::start(&daemon, &[]);
    for at in 0..12 {
        let prompt = format!("{at} is another prompt").repeat(20);
        let mut answer = proxy.complete(&[], &completion(&prompt, 5, at % 2 == 0));
        assert_eq!((answer.status, served_by(&answer).as_str()), (200, "engine-2"));
        answer.text();
    }
    eventually("all are done", || daemon.counter("pickd_requests_done_total") == 12);
    assert!(daemon.counter("pickd_requests_fallback_total") >= 1);
    assert_eq!(daemon.in_flight(), 0);
}

#[test]
fn where_no_engine_answers_the_caller_gets_502_and_nothing_stays_reserved() {
    let (dead, also_dead) = (nobody(), nobody());
    let daemon = Daemon::start(&[&dead, &also_dead], "");
    let proxy = Proxy::start(&daemon, &[]);
    let mut answer = proxy.complete(&[], &completion("Hello", 5, false));
    assert_eq!(answer.status, 502);
    let text = answer.text();
    assert!(text.contains("no engine answered") && text.contains("engine-"), "{text}");
    eventually("it has failed", || daemon.counter("pickd_requests_failed_total") == 1);
    assert_eq!(daemon.in_flight(), 0);
}

#[test]
fn an_engine_that_dies_in_the_middle_breaks_the_answer_off_and_the_other_serves_the_next() {
    let mut engines = [Engine::start(1.0), Engine::start(1.0)];
    let addresses = engines.each_ref().map(|engine| engine.address.as_str());
    let daemon = Daemon::start(&addresses, "");
    let proxy = Proxy::start(&daemon, &[]);
    let prompt = "Once upon a time. ".repeat(50);
    let mut answer = proxy.complete(&[], &completion(&prompt, 5000, true));
    answer.piece().unwrap().unwrap();
    let victim = if served_by(&answer) == "engine-0" { 0 } else { 1 };
    engines[victim].process.kill();
    while let Ok(piece) = answer.piece() {
        assert!(piece.is_some(), "the answer ended as if it were whole");
    }
    eventually("it has failed", || daemon.counter("pickd_requests_failed_total") == 1);
    assert_eq!(daemon.in_flight(), 0);
    let mut next = proxy.complete(&[], &completion(&prompt, 5, false));
    assert_eq!((next.status, served_by(&next)), (200, format!("engine-{}", 1 - victim)));
    next.text();
    eventually("that is done", || daemon.counter("pickd_requests_done_total") == 1);
}

#[test]
fn refusals_have_the_status_of_the_daemons_answer() {
    let engine = Engine::start(1.0);
    let daemon = Daemon::start(&[&engine.address], "reservations: {per_uid_max: 1}");
    let proxy = Proxy::start(&daemon, &["--body-max-bytes", "2000"]);
    let refused = |body: &str| {
        let mut answer = proxy.complete(&[], body);
        let reason = answer.header("x-llm-d-request-dropped-reason").map(str::to_owned);
        let again = answer.header("retry-after").map(str::to_owned);
        let text = answer.text();
        assert!(text.contains("\"error\":{\"message\":\""), "{text}");
        (answer.status, reason, again)
    };
    let unknown = r#"{"model": "unknown", "prompt": "Hello"}"#;
    assert_eq!(refused(unknown), (404, None, None));
    assert_eq!(refused(&completion(&"long ".repeat(500), 5, false)), (413, None, None));

    // Over the limit of reservations while another request is under way.
    let mut under_way = proxy.complete(&[], &completion("Hello", 5000, true));
    under_way.piece().unwrap().unwrap();
    let shed = (429, Some("rejected-saturated".to_owned()), Some("1".to_owned()));
    assert_eq!(refused(&completion("Hello", 5, false)), shed);
    drop(under_way);
    eventually("it has ended", || daemon.in_flight() == 0);

    let control = pickd::Options::new().socket(daemon.socket()).open().unwrap();
    control.drain_endpoint("engine-0", true).unwrap();
    let nobody = (503, Some("rejected-no-endpoints".to_owned()), None);
    assert_eq!(refused(&completion("Hello", 5, false)), nobody);
    control.drain_endpoint("engine-0", false).unwrap();
    let mut answer = proxy.complete(&[], &completion("Hello", 5, false));
    assert_eq!(answer.status, 200);
    answer.text();
}

#[test]
fn a_caller_that_does_not_send_its_body_is_answered_in_time() {
    let engine = Engine::start(100.0);
    let daemon = Daemon::start(&[&engine.address], "");
    let proxy = Proxy::start(&daemon, &["--read-timeout", "50"]);
    let mut stream = std::net::TcpStream::connect(&proxy.address).unwrap();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 408 "), "{text}");
}

#[test]
fn tenants_do_not_share_prefixes() {
    let engine = Engine::start(100.0);
    let daemon = Daemon::start(&[&engine.address], "");
    let proxy = Proxy::start(&daemon, &["--tenant-header", "x-tenant"]);
    let prompt = "Once upon a time. ".repeat(200);
    let matched = |tenant: &str| {
        let before = daemon.counter("pickd_match_blocks_total");
        proxy.complete(&[("x-tenant", tenant)], &completion(&prompt, 1, false)).text();
        eventually("it has ended", || daemon.in_flight() == 0);
        daemon.counter("pickd_match_blocks_total") - before
    };
    assert_eq!(matched("a"), 0);
    assert!(matched("a") > 10);
    assert_eq!(matched("b"), 0);
}

#[test]
fn requests_go_on_while_the_daemon_is_away() {
    let engine = Engine::start(100.0);
    let mut daemon = Daemon::start(&[&engine.address], "");
    let proxy = Proxy::start(&daemon, &[]);
    daemon.process.kill();
    for at in 0..5 {
        let mut answer = proxy.complete(&[], &completion("Hello", 5, at % 2 == 0));
        assert_eq!(answer.status, 200);
        answer.text();
    }
}

#[test]
fn a_stop_lets_what_is_under_way_end_and_takes_nothing_new() {
    let engine = Engine::start(10.0);
    let daemon = Daemon::start(&[&engine.address], "");
    let mut proxy = Proxy::start(&daemon, &[]);
    let mut answer = proxy.complete(&[], &completion("Hello", 500, true));
    answer.piece().unwrap().unwrap();
    proxy.process.signal(libc::SIGTERM);
    eventually("it takes nothing new", || std::net::TcpStream::connect(&proxy.address).is_err());
    let rest = answer.text();
    assert!(rest.trim_end().ends_with("data: [DONE]"), "{rest}");
    assert!(proxy.process.0.wait().unwrap().success());
    eventually("it is done", || daemon.counter("pickd_requests_done_total") == 1);
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let engine = Engine::start(1.0);
    let daemon = Daemon::start(&[&engine.address], "");
    let mut proxy = Proxy::start(&daemon, &["--drain-timeout", "50"]);
    let mut answer = proxy.complete(&[], &completion("Hello", 5000, true));
    answer.piece().unwrap().unwrap();
    proxy.process.signal(libc::SIGTERM);
    assert!(proxy.process.0.wait().unwrap().success());
    while let Ok(piece) = answer.piece() {
        assert!(piece.is_some());
    }
    eventually("nothing is reserved", || daemon.in_flight() == 0);
}

#[test]
fn many_callers_are_served_at_once() {
    let engines = [Engine::start(50.0), Engine::start(50.0)];
    let addresses = engines.each_ref().map(|engine| engine.address.as_str());
    let daemon = Daemon::start(&addresses, "");
    let proxy = Proxy::start(&daemon, &[]);
    std::thread::scope(|scope| {
        for at in 0..64 {
            let proxy = &proxy;
            scope.spawn(move || {
                for turn in 0..4 {
                    let prompt = format!("caller {at} says ").repeat(30);
                    let stream = (at + turn) % 2 == 0;
                    let mut answer = proxy.complete(&[], &completion(&prompt, 10, stream));
                    assert_eq!(answer.status, 200);
                    let text = answer.text();
                    assert!(text.contains("\"completion_tokens\":10"), "{text}");
                }
            });
        }
    });
    eventually("all are done", || daemon.counter("pickd_requests_done_total") == 256);
    assert_eq!(daemon.counter("pickd_output_tokens_total"), 2560);
    assert_eq!(daemon.in_flight(), 0);
}

#[test]
fn help_is_printed_and_mistakes_are_told() {
    let run = |arguments: &[&str]| {
        let command = std::process::Command::new(env!("CARGO_BIN_EXE_rust-proxy"))
            .args(arguments)
            .output()
            .unwrap();
        let both = [command.stdout, command.stderr].concat();
        (command.status.code().unwrap(), String::from_utf8(both).unwrap())
    };
    let (code, help) = run(&["--help"]);
    assert!(code == 0 && help.contains("--drain-timeout MS"), "{help}");
    let (code, said) = run(&["--attempts", "none"]);
    assert!(code == 2 && said.contains("rust-proxy --help"), "{said}");
    let (code, said) = run(&["--socket", "/nonexistent"]);
    assert!(code == 1 && said.contains("pickd: open: "), "{said}");
}
