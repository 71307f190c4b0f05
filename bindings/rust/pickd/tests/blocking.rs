//! The blocking client against a real daemon.

mod common;

use std::collections::HashMap;
use std::time::Duration;

use common::{code, must_pick, prompt, Daemon, ENGINES, LONG};
use pickd::{Code, EndpointSpec, Options, Reason, Report, Request};

#[test]
fn a_pick_lists_the_winner_and_fallbacks() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let text = prompt(1, 1000);
    let pick = must_pick(&client, &Request::new().model("m").text(&text));
    let listed: HashMap<_, _> = pick.endpoints().map(|e| (e.name, e.address)).collect();
    assert_eq!(pick.endpoints().len(), ENGINES);
    assert_eq!(listed.len(), ENGINES);
    assert_eq!(listed["engine-2"], "127.0.0.1:9002");
    let winner = pick.endpoints().next().unwrap();
    assert_eq!((pick.address(), pick.name()), (winner.address, winner.name));
    assert_eq!(pick.prompt_tokens(), 1000);
    assert!(!pick.is_degraded() && !pick.is_cut() && pick.prefill().is_none());
    assert_ne!(pick.ticket(), pickd::Ticket::default());
    assert!(format!("{pick:?}").contains("engine-2"));
    let info = client.info().unwrap();
    assert_eq!(info.version, pickd::VERSION);
    assert!(info.block_tokens > 0 && info.keys_max >= 16);
}

#[test]
fn a_prompt_is_matched_however_it_is_cut_and_another_salt_matches_nothing() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let text = prompt(2, 640);
    let first = must_pick(&client, &Request::new().model("m").text(&text));
    let cut = Request::new().model("m").text(&text[..1]).text("").text(&text[1..700]);
    let cut = cut.text(&text[700..]);
    let second = must_pick(&client, &cut);
    assert_eq!(second.name(), first.name());
    assert!(second.endpoints().next().unwrap().match_tokens >= 576, "{second:?}");
    let salted = must_pick(&client, &Request::new().model("m").salt("tenant").text(&text));
    assert_eq!(salted.endpoints().next().unwrap().match_tokens, 0);
}

#[test]
fn token_ids_extras_and_attributes_reach_the_library() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let ids: Vec<u32> = (0..640).collect();
    let (cat, dog) = ([1u8; 32], [2u8; 32]);
    let request = |digest| {
        Request::new()
            .model("m")
            .token_ids(&ids)
            .extra(100, digest)
            .attribute("x-tier", "gold")
            .attribute("x-region", "")
            .session_id("s")
            .fairness_id("f")
            .request_id("r")
            .slo_ttft(Duration::from_secs(1))
            .priority(1)
            .stream(true)
    };
    let matched =
        |digest| must_pick(&client, &request(digest)).endpoints().next().unwrap().match_tokens;
    assert_eq!(must_pick(&client, &request(&cat)).prompt_tokens(), 640);
    assert!(matched(&cat) >= 576);
    assert!(matched(&dog) < 128);
}

#[test]
fn a_subset_is_heeded_and_an_empty_one_means_nobody() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let allowed = ["engine-3", "127.0.0.1:9001"];
    for _ in 0..8 {
        let pick = must_pick(&client, &Request::new().model("m").subset(&allowed));
        assert!(pick.endpoints().all(|e| e.name == "engine-3" || e.name == "engine-1"));
    }
    let nobody: [String; 0] = [];
    let error = client.pick(&Request::new().model("m").subset(&nobody)).unwrap_err();
    assert_eq!((error.code(), error.http_status()), (Code::NoEndpoint, 503));
}

#[test]
fn errors_have_codes_words_and_a_status() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let (long, nobody) = ("x".repeat(400), ["nobody"]);
    let cases = [
        (Request::new().model("unknown"), Code::NotFound, 404),
        (Request::new().model("m").text("a").token_ids(&[1]), Code::Invalid, 400),
        (Request::new().model(&long), Code::TooBig, 400),
        (Request::new().model("m").endpoints_max(9), Code::Invalid, 400),
        (Request::new().model("m").priority(40000), Code::Invalid, 400),
        (Request::new().model("m").subset(&nobody), Code::NoEndpoint, 503),
    ];
    for (request, wanted, status) in cases {
        let error = client.pick_within(&request, LONG).unwrap_err();
        assert_eq!((error.code(), error.http_status()), (wanted, status), "{error}");
        assert_eq!(error.op(), "pick");
        assert!(error.to_string().starts_with("pickd: pick: "), "{error}");
        // Which argument it was, the library says in words.
        assert_eq!(error.detail().is_some(), status == 400, "{error:?}");
    }
}

#[test]
fn opening_without_a_daemon_says_so() {
    let nobody = Options::new().socket("/nonexistent/socket");
    let error = nobody.connect_timeout(Duration::from_secs(1)).open().unwrap_err();
    assert_eq!(error.code(), Code::NotConnected);
    assert!(error.detail().unwrap().contains("/nonexistent/socket"), "{error}");
    assert_eq!(code(Options::new().keys_max(1 << 30).open()), Code::Invalid);
}

#[test]
fn reports_move_and_end_reservations() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let text = prompt(3, 100);
    let pick = must_pick(&client, &Request::new().model("m").text(&text));
    let ticket = pick.ticket();
    assert_eq!(daemon.in_flight(), 1);
    let second = pick.endpoints().nth(1).unwrap().address;
    for report in
        [Report::fallback(ticket, second), Report::first_token(ticket), Report::progress(ticket, 5)]
    {
        client.report_and_wait(&report, LONG).unwrap();
    }
    let done = Report::done(ticket).prompt_tokens(100).cached_tokens(0).output_tokens(12);
    client.report_and_wait(&done, LONG).unwrap();
    assert_eq!(daemon.in_flight(), 0);
    assert_eq!(code(client.report_and_wait(&done, LONG)), Code::Stale);
    client.report(&done).unwrap();
    let other = must_pick(&client, &Request::new().model("m"));
    let nobody = Report::fallback(other.ticket(), "nobody");
    assert_eq!(code(client.report_and_wait(&nobody, LONG)), Code::NotFound);
    client.report_and_wait(&Report::failed(other.ticket()), LONG).unwrap();
}

#[test]
fn a_dry_run_reserves_nothing() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    must_pick(&client, &Request::new().model("m").dry_run(true));
    assert_eq!(daemon.in_flight(), 0);
}

#[test]
fn endpoints_come_go_and_drain() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let mut spec = EndpointSpec {
        models: vec!["n".into(), "o".into()],
        labels: vec![("zone".into(), "a".into())],
        capacity_tokens: 1000,
        waiting: Some(0),
        adapters_active: vec!["sql".into()],
        adapters_max: 4,
        ..EndpointSpec::new("late", "127.0.0.1:9100")
    };
    client.add_endpoint(&spec).unwrap();
    assert_eq!(code(client.add_endpoint(&spec)), Code::Exists);
    let pick = must_pick(&client, &Request::new().model("o"));
    assert_eq!((pick.name(), pick.reason()), ("late", Reason::Only));
    assert_eq!(pick.reason().to_string(), "only");
    spec.address = "127.0.0.1:9101".into();
    client.update_endpoint(&spec).unwrap();
    client.reset_endpoint("late").unwrap();
    assert_eq!(must_pick(&client, &Request::new().model("n")).address(), spec.address);
    client.drain_endpoint("late", true).unwrap();
    client.drain_endpoint("late", false).unwrap();
    client.remove_endpoint("late").unwrap();
    assert_eq!(code(client.remove_endpoint("late")), Code::NotFound);
    assert_eq!(code(client.remove_endpoint("a\0b")), Code::Invalid);
}

#[test]
fn many_threads_share_a_client_and_picks_go_from_one_to_another() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let (client, sender) = (client.clone(), sender.clone());
            scope.spawn(move || {
                let text = prompt(seed, 200);
                for _ in 0..100 {
                    let pick = must_pick(&client, &Request::new().model("m").text(&text));
                    sender.send(pick).unwrap();
                }
            });
        }
        drop(sender);
        // Read here what was filled there, then give it back to this thread's pool.
        for pick in receiver {
            assert_eq!(pick.endpoints().len(), ENGINES);
            // The rings may be full of reports: the daemon takes them in a moment.
            while let Err(error) = client.report(&Report::done(pick.ticket())) {
                assert_eq!(error.code(), Code::Limited);
                std::thread::yield_now();
            }
        }
    });
    daemon.await_nothing_reserved();
}

#[test]
fn threads_that_share_a_pick_read_the_same() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    for _ in 0..50 {
        let pick = must_pick(&client, &Request::new().model("m"));
        let read = || pick.endpoints().map(|e| e.address.to_owned()).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
            for other in others {
                assert_eq!(other.join().unwrap(), read());
            }
        });
    }
}

#[test]
fn picks_go_on_while_the_daemon_is_away_and_when_it_is_back() {
    let mut daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let text = prompt(5, 640);
    let request = Request::new().model("m").text(&text);
    let ended = must_pick(&client, &request);
    let before = must_pick(&client, &request);
    daemon.kill();
    let pick = must_pick(&client, &request);
    assert!(pick.is_degraded() && pick.reason() == Reason::Degraded, "{pick:?}");
    assert!(pick.endpoints().len() > 0 && pick.ttft().is_none());
    client.report(&Report::first_token(pick.ticket())).unwrap();
    client.report(&Report::done(pick.ticket())).unwrap();
    assert_eq!(code(client.report(&Report::first_token(before.ticket()))), Code::NotConnected);
    let end = Report::done(ended.ticket());
    client.report(&end).unwrap(); // kept until the daemon is back
    daemon.run();
    let deadline = std::time::Instant::now() + LONG;
    while must_pick(&client, &request).is_degraded() {
        assert!(std::time::Instant::now() < deadline, "still degraded");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(code(client.report_and_wait(&end, LONG)), Code::Stale);
    client.report_and_wait(&Report::done(before.ticket()), LONG).unwrap();
}

#[test]
fn a_forked_child_is_told_that_it_has_no_client() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let request = Request::new().model("m");
    must_pick(&client, &request);
    // SAFETY: the child calls what allocates, which is good as long as no other thread of the test
    // holds the allocator's lock; glibc's survives a fork.
    match unsafe { libc::fork() } {
        0 => {
            let right = matches!(client.pick(&request), Err(error) if error.code() == Code::Forked);
            drop(client);
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(if right { 0 } else { 1 }) }
        }
        child => {
            let mut status = -1;
            // SAFETY: waits for the child of this test.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
            must_pick(&client, &request);
        }
    }
}
