//! Served: one picked request from the pick to the report of its end. Whatever happens to its
//! owner, the end is reported once.

use std::time::{Duration, Instant};

use pickd::body::{AnswerHead, Api};
use pickd::{AsyncClient, Pick, Report, ReportKind, Ticket};

use crate::body::{Held, Lent};

/// How often a stream is said to live: well within the lease of a reservation.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Holds what a request reserved. Dropped before its end was reported, it reports that the caller
/// went away, which releases it and says nothing of the endpoint.
pub struct Served {
    client: AsyncClient,
    ticket: Ticket,
    readers: Lent,
    _held: Held,
    told: Instant, // when the daemon heard of it last
    readable: bool,
    over: bool,
}

impl Served {
    pub fn new(client: &AsyncClient, pick: &Pick, readers: Lent, held: Held) -> Served {
        let (client, ticket, told) = (client.clone(), pick.ticket(), Instant::now());
        Served { client, ticket, readers, _held: held, told, readable: false, over: false }
    }

    fn report(&mut self, report: &Report) {
        self.told = Instant::now();
        // Without the daemon there is nobody to tell; the reservation then ends with its lease.
        let _ = self.client.report(report);
    }

    /// Ends it.
    fn end(&mut self, report: &Report) {
        if !std::mem::replace(&mut self.over, true) {
            self.report(report);
        }
    }

    /// The endpoint failed, and this one is asked now.
    pub fn goes_on_at(&mut self, address: &str) {
        let report = Report::fallback(self.ticket, address);
        self.report(&report);
    }

    /// The endpoint failed, and the request with it.
    pub fn failed(&mut self) {
        self.end(&Report::failed(self.ticket));
    }

    /// The head of the answer has come.
    pub fn answers(&mut self, api: Api, status: u16, headers: &hyper::HeaderMap) {
        let mut head = AnswerHead::new(api, status);
        for (name, value) in headers {
            head = head.header(name.as_str(), value.as_bytes());
        }
        self.readable = self.readers.answer.begin(&head).is_ok();
    }

    /// A piece of its body has come.
    pub fn piece(&mut self, piece: &[u8]) {
        if !self.readable || self.over {
            return;
        }
        let Ok(came) = self.readers.answer.add(piece) else {
            self.readable = false;
            return;
        };
        if came.first_token {
            self.report(&Report::first_token(self.ticket));
        } else if came.tokens && self.told.elapsed() > PROGRESS_EVERY {
            if let Some(report) = self.readers.answer.report(self.ticket) {
                self.report(&report);
            }
        }
    }

    /// The body is complete.
    pub fn complete(&mut self) {
        // What is wrong with it is in the report: a stream that breaks off is a failure.
        let _ = self.readers.answer.end();
        let told = self.readers.answer.report(self.ticket).filter(|_| self.readable);
        self.end(&told.unwrap_or_else(|| Report::new(self.ticket, ReportKind::Done)));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end(&Report::cancelled(self.ticket));
    }
}
