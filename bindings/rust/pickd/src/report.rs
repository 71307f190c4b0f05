//! Reports on picks, as plain data. What the daemon makes of them is not known here.

use pickd_sys as sys;

use crate::pick::Ticket;
use crate::request::slice_of;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReportKind {
    /// The first token came: its prefill is over.
    FirstToken = sys::PICKD_REPORT_FIRST_TOKEN as isize,
    /// The stream lives; output tokens so far.
    Progress = sys::PICKD_REPORT_PROGRESS as isize,
    /// The request ended well; usage as far as known.
    Done = sys::PICKD_REPORT_DONE as isize,
    /// The endpoint failed, which makes it suspect; the request ended.
    Failed = sys::PICKD_REPORT_FAILED as isize,
    /// It failed too, and another endpoint serves now: the reservation moves.
    Fallback = sys::PICKD_REPORT_FALLBACK as isize,
    /// The caller went away: says nothing of the endpoint; the request ended.
    Cancelled = sys::PICKD_REPORT_CANCELLED as isize,
}

/// Tells the daemon what became of the request of a ticket. [`ReportKind::Done`],
/// [`ReportKind::Failed`] and [`ReportKind::Cancelled`] end it, and are applied once.
///
/// ```
/// # let ticket = pickd::Ticket::default();
/// let report = pickd::Report::done(ticket).prompt_tokens(812).output_tokens(120);
/// assert_eq!(report.kind, pickd::ReportKind::Done);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whose request it is.
    pub ticket: Ticket,
    /// What became of it.
    pub kind: ReportKind,
    /// From the engine's usage, where it is known.
    pub prompt_tokens: Option<u32>,
    /// `usage.prompt_tokens_details.cached_tokens`, where it is known.
    pub cached_tokens: Option<u32>,
    /// From the engine's usage; of [`ReportKind::Progress`], so far.
    pub output_tokens: Option<u32>,
    /// Of [`ReportKind::Fallback`]: name or address out of the pick.
    pub endpoint: Option<Box<str>>,
}

impl Report {
    /// A report of this kind that tells no counts.
    pub fn new(ticket: Ticket, kind: ReportKind) -> Report {
        Report {
            ticket,
            kind,
            prompt_tokens: None,
            cached_tokens: None,
            output_tokens: None,
            endpoint: None,
        }
    }

    /// The first token came.
    pub fn first_token(ticket: Ticket) -> Report {
        Report::new(ticket, ReportKind::FirstToken)
    }

    /// The stream lives, with so many tokens until now.
    pub fn progress(ticket: Ticket, output_tokens: u32) -> Report {
        Report::new(ticket, ReportKind::Progress).output_tokens(output_tokens)
    }

    /// The request ended well.
    pub fn done(ticket: Ticket) -> Report {
        Report::new(ticket, ReportKind::Done)
    }

    /// The endpoint failed and the request with it.
    pub fn failed(ticket: Ticket) -> Report {
        Report::new(ticket, ReportKind::Failed)
    }

    /// The endpoint failed; this one, name or address out of the pick, serves now.
    pub fn fallback(ticket: Ticket, endpoint: &str) -> Report {
        Report { endpoint: Some(endpoint.into()), ..Report::new(ticket, ReportKind::Fallback) }
    }

    /// The caller went away.
    pub fn cancelled(ticket: Ticket) -> Report {
        Report::new(ticket, ReportKind::Cancelled)
    }

    /// Sets the tokens of the prompt.
    pub fn prompt_tokens(mut self, tokens: u32) -> Report {
        self.prompt_tokens = Some(tokens);
        self
    }

    /// Sets the tokens of the prompt that the engine had cached.
    pub fn cached_tokens(mut self, tokens: u32) -> Report {
        self.cached_tokens = Some(tokens);
        self
    }

    /// Sets the tokens of the answer.
    pub fn output_tokens(mut self, tokens: u32) -> Report {
        self.output_tokens = Some(tokens);
        self
    }

    /// The report for one call; it points into `self`.
    pub(crate) fn raw(&self) -> sys::pickd_report_info {
        sys::pickd_report_info {
            struct_size: std::mem::size_of::<sys::pickd_report_info>(),
            ticket: self.ticket.raw(),
            kind: self.kind as sys::pickd_report_kind,
            prompt_tokens: count(self.prompt_tokens),
            cached_tokens: count(self.cached_tokens),
            output_tokens: count(self.output_tokens),
            endpoint: slice_of(self.endpoint.as_deref().unwrap_or("").as_bytes()),
        }
    }
}

/// The largest number stands for "unknown", so a count stays below it.
fn count(tokens: Option<u32>) -> u32 {
    tokens.map_or(sys::PICKD_UNKNOWN, |tokens| tokens.min(sys::PICKD_UNKNOWN - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_know_whether_they_are_known() {
        let ticket = Ticket { client: 1, sequence: 2 };
        let raw = Report::done(ticket).output_tokens(0).cached_tokens(u32::MAX).raw();
        assert_eq!((raw.ticket.client, raw.ticket.sequence), (1, 2));
        assert_eq!(raw.kind, sys::PICKD_REPORT_DONE);
        assert_eq!(raw.prompt_tokens, sys::PICKD_UNKNOWN);
        assert_eq!((raw.output_tokens, raw.cached_tokens), (0, u32::MAX - 1));
    }

    #[test]
    fn kinds_are_those_of_the_header_and_a_fallback_names_its_endpoint() {
        let ticket = Ticket::default();
        let kind = |report: Report| report.raw().kind;
        assert_eq!(kind(Report::first_token(ticket)), sys::PICKD_REPORT_FIRST_TOKEN);
        assert_eq!(kind(Report::progress(ticket, 5)), sys::PICKD_REPORT_PROGRESS);
        assert_eq!(kind(Report::failed(ticket)), sys::PICKD_REPORT_FAILED);
        assert_eq!(kind(Report::cancelled(ticket)), sys::PICKD_REPORT_CANCELLED);
        let fallback = Report::fallback(ticket, "engine-1");
        assert_eq!(kind(fallback.clone()), sys::PICKD_REPORT_FALLBACK);
        assert_eq!(fallback.raw().endpoint.size, "engine-1".len());
    }
}
