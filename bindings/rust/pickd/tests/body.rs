//! Bodies and answers through libpickd-body, and a pick of what it read.
#![cfg(feature = "body")]

mod common;

use common::{must_pick, prompt, Daemon};
use pickd::body::{
    Answer, AnswerHead, AnswerOptions, Api, Body, BodyOptions, Counters, Head, Prompt,
};
use pickd::{Code, ReportKind, Ticket};

fn chat(turns: &[(&str, &str)]) -> String {
    let turns: Vec<_> = turns
        .iter()
        .map(|(role, text)| format!(r#"{{"role": "{role}", "content": "{text}"}}"#))
        .collect();
    format!(r#"{{"model": "m", "stream": true, "messages": [{}]}}"#, turns.join(", "))
}

fn read(body: &mut Body, bytes: &str, piece: usize) {
    body.begin(&Head::new("/v1/chat/completions").header("X-Session-Id", "s-1")).unwrap();
    for piece in bytes.as_bytes().chunks(piece) {
        body.add(piece).unwrap();
    }
    body.end().unwrap();
}

#[test]
fn a_body_tells_what_it_holds_however_it_is_cut() {
    let mut body = Body::new(&BodyOptions::default()).unwrap();
    let text = chat(&[("user", "Hi")]);
    for piece in [1, 7, 1000] {
        read(&mut body, &text, piece);
        let info = body.info().unwrap();
        assert_eq!((info.api, info.stream, info.n), (Api::Chat, true, 1));
        assert_eq!((info.model, info.session_id), (&b"m"[..], &b"s-1"[..]));
        assert_eq!((info.bytes, info.max_tokens), (text.as_bytes(), None));
    }
}

#[test]
fn what_cannot_be_read_says_why_and_is_picked_by_load() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let counters = Counters::new().unwrap();
    let options = BodyOptions {
        body_bytes_max: 100,
        counters: Some(counters.clone()),
        ..BodyOptions::default()
    };
    let mut body = Body::new(&options).unwrap();
    let mut why = |path: &str, bytes: &[u8]| {
        body.begin(&Head::new(path)).unwrap();
        let _ = body.add(bytes);
        let error = body.end().unwrap_err();
        let request = body.request(Prompt::Longest).unwrap();
        assert!(must_pick(&client, &request).endpoints().len() > 0);
        assert!(error.detail().is_some(), "{error}");
        error.code()
    };
    assert_eq!(why("/v1/completions", b""), Code::NoData);
    assert_eq!(why("/v1/completions", b"{\"prompt\": "), Code::Malformed);
    assert_eq!(why("/v1/completions", &[b' '; 200]), Code::TooBig);
    assert_eq!(why("/v1/what", b"{}"), Code::NotFound);
    let counted = counters.read();
    let of = |name| counted.iter().find(|counter| counter.name == name).unwrap().value;
    assert_eq!(of("bodies_total"), 4);
    assert!(counted.iter().all(|counter| !counter.help.is_empty()));
}

#[test]
fn the_next_turn_matches_the_prompt_and_the_answer_that_was_appended() {
    let daemon = Daemon::start();
    let client = daemon.options().open().unwrap();
    let (question, reply) = (prompt(1, 640), prompt(2, 640));
    let mut body = Body::new(&BodyOptions::default()).unwrap();
    read(&mut body, &chat(&[("user", &question)]), 100);
    let first = must_pick(&client, &body.request(Prompt::Longest).unwrap());

    let mut answer = Answer::new(&AnswerOptions::default()).unwrap();
    let head = AnswerHead::new(Api::Chat, 200).header("Content-Type", "text/event-stream");
    answer.begin(&head.keep_text()).unwrap();
    assert_eq!(answer.report(first.ticket()), None);
    let mut first_tokens = 0;
    for part in reply.as_bytes().chunks(300) {
        let part = std::str::from_utf8(part).unwrap();
        let event =
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{part}\"}}}}]}}\r\n\r\n");
        let (one, two) = event.as_bytes().split_at(event.len() / 2);
        for piece in [one, two] {
            first_tokens += usize::from(answer.add(piece).unwrap().first_token);
        }
    }
    assert_eq!(first_tokens, 1);
    assert_eq!(answer.report(first.ticket()).unwrap().kind, ReportKind::Progress);
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":640,\"completion_tokens\":41,\
                 \"prompt_tokens_details\":{\"cached_tokens\":64}}}\n\ndata: [DONE]\n\n";
    let events = answer.add(usage.as_bytes()).unwrap();
    assert!(events.usage && events.ended);
    answer.end().unwrap();
    let report = answer.report(first.ticket()).unwrap();
    assert_eq!(report.kind, ReportKind::Done);
    assert_eq!((report.prompt_tokens, report.cached_tokens), (Some(640), Some(64)));
    assert_eq!(report.output_tokens, Some(41));
    client.report_and_wait(&report, common::LONG).unwrap();

    body.append(&answer).unwrap();
    assert_eq!(body.append(&answer).unwrap_err().code(), Code::Exists);
    let served = [first.name().to_owned()];
    let whole = body.request(Prompt::Longest).unwrap().subset(&served);
    must_pick(&client, &whole);
    read(&mut body, &chat(&[("user", &question), ("assistant", &reply), ("user", "Go on")]), 4096);
    let next = must_pick(&client, &body.request(Prompt::Longest).unwrap());
    assert_eq!(next.name(), first.name());
    assert!(next.endpoints().next().unwrap().match_tokens >= 1200, "{next:?}");
}

#[test]
fn a_stream_that_breaks_off_is_a_failure() {
    let mut answer = Answer::new(&AnswerOptions::default()).unwrap();
    let head = AnswerHead::new(Api::Chat, 200).header("content-type", "text/event-stream");
    answer.begin(&head).unwrap();
    answer.add(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n").unwrap();
    assert_eq!(answer.end().unwrap_err().code(), Code::Malformed);
    assert_eq!(answer.report(Ticket::default()).unwrap().kind, ReportKind::Failed);
    assert_eq!(answer.add(b"").unwrap_err().code(), Code::Invalid);
}
