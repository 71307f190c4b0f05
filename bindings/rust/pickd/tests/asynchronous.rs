//! The async client against a real daemon: many tasks, dropped and late picks, daemons that die.
//! Nothing is lost, leaked or counted twice.
#![cfg(feature = "async")]

mod common;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use common::{code, own, prompt, Daemon, LONG};
use pickd::{AsyncClient, Code, Error, Options, Report, Request};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Runs a test with one thread and with several, with one queue and with several, looking or not.
fn in_every_mode<T>(daemon: &Daemon, test: impl Fn(AsyncClient) -> T)
where
    T: Future<Output = ()>,
{
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let modes: [(&Runtime, Options); 3] = [
        (&single, daemon.options()),
        (&runtime(), daemon.options()),
        (&runtime(), daemon.options().queues(4).depth(64).spin(Duration::ZERO)),
    ];
    for (runtime, options) in modes {
        runtime.block_on(async { test(options.open_async().await.unwrap()).await });
    }
}

/// Picks and reports, as a request that is served at once.
async fn serve(client: AsyncClient, seed: usize) -> Result<(), Error> {
    let text = prompt(seed, 64);
    let pick = client.pick(&Request::new().model("m").text(&text)).await?;
    client.report(&Report::done(pick.ticket()))
}

/// Polls once; what is woken later is nobody.
fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    struct Nobody;
    impl std::task::Wake for Nobody {
        fn wake(self: std::sync::Arc<Self>) {}
    }
    future.poll(&mut Context::from_waker(&Waker::from(std::sync::Arc::new(Nobody))))
}

#[test]
fn ten_thousand_tasks_pick_at_once_on_few_threads() {
    const TASKS: usize = 10_000;
    let daemon = Daemon::start_with("reservations: {per_uid_max: 60000}");
    in_every_mode(&daemon, |client| {
        let daemon = &daemon;
        async move {
            daemon.stop(); // so that all of them wait at once
            let before = own("task");
            let mut tasks = JoinSet::new();
            for seed in 0..TASKS {
                tasks.spawn(serve(client.clone(), seed));
            }
            // Each has been polled once when this has been as often; on one thread certainly.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            let grown = own("task").saturating_sub(before);
            daemon.go_on();
            while let Some(served) = tasks.join_next().await {
                served.unwrap().unwrap();
            }
            assert!(grown < 8, "{grown} threads more for {TASKS} tasks");
            daemon.await_nothing_reserved();
        }
    });
}

#[test]
fn a_dropped_pick_is_taken_back_before_and_after_its_answer() {
    let daemon = Daemon::start();
    in_every_mode(&daemon, |client| {
        let daemon = &daemon;
        async move {
            let text = prompt(1, 64);
            let request = Request::new().model("m").text(&text);
            // Outstanding, and more than a queue of depth 64 has: some stand in line.
            daemon.stop();
            for _ in 0..2 {
                let mut picks: Vec<_> = (0..100).map(|_| Box::pin(client.pick(&request))).collect();
                for pick in &mut picks {
                    assert!(poll_once(pick.as_mut()).is_pending());
                }
                drop(picks.remove(99)); // from the end of the line, and
                drop(picks.remove(0)); // one that makes room for it
            }
            daemon.go_on();
            let kept = client.pick(&request).await.unwrap(); // every place is free again
            let reserved = Instant::now();
            while daemon.in_flight() != 1 {
                assert!(reserved.elapsed() < LONG);
                tokio::task::yield_now().await;
            }
            // Answered, and the answer not taken: the driver has put it into its place.
            let mut late = Box::pin(client.pick(&request));
            if let Poll::Ready(pick) = poll_once(late.as_mut()) {
                client.report(&Report::done(pick.unwrap().ticket())).unwrap();
            } else {
                while daemon.in_flight() != 2 {
                    assert!(reserved.elapsed() < LONG);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                drop(late);
                while daemon.in_flight() != 1 {
                    assert!(reserved.elapsed() < LONG);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            client.report_and_wait(&Report::done(kept.ticket()), LONG).await.unwrap();
        }
    });
}

#[test]
fn picks_that_are_dropped_at_any_moment_leave_nothing_reserved() {
    let daemon = Daemon::start();
    in_every_mode(&daemon, |client| {
        let daemon = &daemon;
        async move {
            let mut tasks = JoinSet::new();
            for seed in 0..50 {
                let client = client.clone();
                tasks.spawn(async move {
                    let text = prompt(seed, 64);
                    let request = Request::new().model("m").text(&text);
                    for at in 0..40 {
                        let longest = Duration::from_micros((seed as u64 * 7 + at * 13) % 300);
                        let pick = tokio::time::timeout(longest, client.pick(&request)).await;
                        if let Ok(pick) = pick {
                            client.report(&Report::done(pick.unwrap().ticket())).unwrap();
                        }
                    }
                });
            }
            while let Some(ended) = tasks.join_next().await {
                ended.unwrap();
            }
            // What was cancelled is released though nothing more is picked.
            let begun = Instant::now();
            while daemon.in_flight() != 0 {
                assert!(begun.elapsed() < LONG, "{} are left", daemon.in_flight());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    });
}

#[test]
fn a_deadline_gives_a_degraded_pick_when_the_daemon_stands_still() {
    let daemon = Daemon::start();
    in_every_mode(&daemon, |client| {
        let daemon = &daemon;
        async move {
            let text = prompt(4, 640);
            let request = Request::new().model("m").text(&text);
            daemon.stop();
            let pick = client.pick_within(&request, Duration::from_millis(300)).await.unwrap();
            assert!(pick.is_degraded(), "{pick:?}");
            // Those in line have no endpoint when their time is over; which are, the depth says.
            let mut picks = JoinSet::new();
            for seed in 0..300 {
                let client = client.clone();
                picks.spawn(async move {
                    let text = prompt(seed, 64);
                    let request = Request::new().model("m").text(&text);
                    client.pick_within(&request, Duration::from_millis(200)).await
                });
            }
            while let Some(pick) = picks.join_next().await {
                match pick.unwrap() {
                    Ok(pick) => assert!(pick.is_degraded()),
                    Err(error) => assert_eq!(error.code(), Code::Timeout),
                }
            }
            daemon.go_on();
        }
    });
}

#[test]
fn picks_go_on_while_the_daemon_is_away_and_when_it_is_back() {
    let mut daemon = Daemon::start();
    let runtime = runtime();
    // One queue: what it tells the daemon that is back comes before its picks.
    let client = runtime.block_on(daemon.options().queues(1).open_async()).unwrap();
    let text = prompt(5, 640);
    let request = Request::new().model("m").text(&text);
    let ended = runtime.block_on(client.pick(&request)).unwrap();
    let before = runtime.block_on(client.pick(&request)).unwrap();
    daemon.kill();
    let pick = runtime.block_on(client.pick(&request)).unwrap();
    assert!(pick.is_degraded() && pick.endpoints().len() > 0);
    client.report(&Report::first_token(pick.ticket())).unwrap();
    client.report(&Report::done(pick.ticket())).unwrap();
    assert_eq!(code(client.report(&Report::first_token(before.ticket()))), Code::NotConnected);
    let end = Report::done(ended.ticket());
    client.report(&end).unwrap(); // kept until the daemon is back
    daemon.run();
    let deadline = Instant::now() + LONG;
    while runtime.block_on(client.pick(&request)).unwrap().is_degraded() {
        assert!(Instant::now() < deadline, "still degraded");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(code(runtime.block_on(client.report_and_wait(&end, LONG))), Code::Stale);
    let report = Report::done(before.ticket());
    runtime.block_on(client.report_and_wait(&report, LONG)).unwrap();
    assert_eq!(code(runtime.block_on(client.report_and_wait(&report, LONG))), Code::Stale);
}

#[test]
fn what_is_outstanding_when_the_daemon_dies_is_answered() {
    for queues in [1, 4] {
        let mut daemon = Daemon::start();
        let runtime = runtime();
        let options = daemon.options().queues(queues).depth(64);
        let client = runtime.block_on(options.open_async()).unwrap();
        daemon.stop();
        let mut picks = JoinSet::new();
        for seed in 0..200 {
            let client = client.clone();
            let pick = async move {
                let text = prompt(seed, 640);
                let request = Request::new().model("m").text(&text);
                client.pick(&request).await.map(|pick| pick.endpoints().len())
            };
            picks.spawn_on(pick, runtime.handle());
        }
        daemon.kill();
        runtime.block_on(async {
            while let Some(listed) = picks.join_next().await {
                assert!(listed.unwrap().unwrap() > 0);
            }
        });
    }
}

#[test]
fn closing_ends_what_is_under_way_and_what_comes_after() {
    let daemon = Daemon::start();
    in_every_mode(&daemon, |client| {
        let daemon = &daemon;
        async move {
            daemon.stop();
            let mut tasks = JoinSet::new();
            for seed in 0..300 {
                tasks.spawn(serve(client.clone(), seed));
            }
            tokio::task::yield_now().await;
            client.close();
            while let Some(ended) = tasks.join_next().await {
                assert_eq!(code(ended.unwrap()), Code::Closed);
            }
            client.close();
            assert_eq!(code(client.pick(&Request::new()).await), Code::Closed);
            assert_eq!(code(client.report(&Report::done(pickd::Ticket::default()))), Code::Closed);
            daemon.go_on();
            // The connection itself stays for blocking calls until the last clone goes.
            client.blocking().pick(&Request::new().model("m").dry_run(true)).unwrap();
        }
    });
}

#[test]
fn closing_may_come_in_the_middle_of_everything() {
    let daemon = Daemon::start();
    let runtime = runtime();
    runtime.block_on(async {
        for _ in 0..5 {
            let client = daemon.options().queues(2).open_async().await.unwrap();
            let mut tasks = JoinSet::new();
            let (begun, mut first) = tokio::sync::mpsc::channel(1);
            for seed in 0..40 {
                let (client, begun) = (client.clone(), begun.clone());
                tasks.spawn(async move {
                    loop {
                        match serve(client.clone(), seed).await {
                            Ok(()) => drop(begun.try_send(())),
                            Err(error) => return assert_eq!(error.code(), Code::Closed),
                        }
                    }
                });
            }
            first.recv().await.unwrap();
            client.close();
            while let Some(ended) = tasks.join_next().await {
                ended.unwrap();
            }
        }
    });
}

#[test]
fn a_client_whose_runtime_has_ended_answers_that_it_is_closed() {
    let daemon = Daemon::start();
    let first = runtime();
    let client = first.block_on(daemon.options().open_async()).unwrap();
    first.block_on(serve(client.clone(), 1)).unwrap();
    drop(first);
    assert_eq!(code(runtime().block_on(serve(client, 1))), Code::Closed);
}

// Picks that are alone look for their answers, others wait: each way into the other must leave
// somebody who is woken.
#[test]
fn few_tasks_never_wait_for_ever() {
    let daemon = Daemon::start();
    in_every_mode(&daemon, |client| async move {
        for count in 1..=6 {
            let mut tasks = JoinSet::new();
            for seed in 0..count {
                let client = client.clone();
                tasks.spawn(async move {
                    for _ in 0..200 {
                        serve(client.clone(), seed).await?;
                    }
                    Ok::<_, Error>(())
                });
            }
            while let Some(ended) = tasks.join_next().await {
                ended.unwrap().unwrap();
            }
        }
    });
}

#[test]
fn long_prompts_that_do_not_fit_the_ring_together_all_get_an_answer() {
    const PICKS: usize = 200; // of 4 KiB of keys each: 800 KiB through a ring of 128
    let daemon = Daemon::start();
    in_every_mode(&daemon, |client| async move {
        let mut tasks = JoinSet::new();
        for seed in 0..PICKS {
            let client = client.clone();
            tasks.spawn(async move {
                let text = prompt(seed, 32_000);
                client.pick(&Request::new().model("m").text(&text)).await.map(drop)
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap().unwrap();
        }
    });
}

#[test]
fn reports_that_find_the_ring_full_arrive_all_the_same() {
    let daemon = Daemon::start_with("reservations: {per_uid_max: 60000}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = daemon.options().open_async().await.unwrap();
        let request = Request::new().model("m");
        let mut tickets = Vec::new();
        for _ in 0..5000 {
            tickets.push(client.pick(&request).await.unwrap().ticket());
        }
        assert_eq!(daemon.in_flight(), 5000);
        daemon.stop();
        for ticket in &tickets {
            client.report(&Report::first_token(*ticket)).unwrap();
            client.report(&Report::done(*ticket)).unwrap();
        }
        daemon.go_on();
        let begun = Instant::now();
        while daemon.in_flight() != 0 {
            assert!(begun.elapsed() < LONG, "{} are left", daemon.in_flight());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn nothing_is_left_when_the_last_clone_goes() {
    let daemon = Daemon::start();
    let runtime = runtime();
    let once = || {
        runtime.block_on(async {
            let client = daemon.options().open_async().await.unwrap();
            let mut tasks = JoinSet::new();
            for seed in 0..100 {
                tasks.spawn(serve(client.clone(), seed));
            }
            while let Some(served) = tasks.join_next().await {
                served.unwrap().unwrap();
            }
        });
    };
    once(); // what the runtime opens for itself is there after this
    let before = own("fd");
    for _ in 0..20 {
        once();
    }
    // The driver lets go of its descriptor when it is polled next.
    let deadline = Instant::now() + LONG;
    while own("fd") > before {
        assert!(Instant::now() < deadline, "{} descriptors, before {before}", own("fd"));
        std::thread::yield_now();
    }
}
