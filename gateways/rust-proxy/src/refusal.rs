//! Answers of the proxy's own, with a body as the engines' APIs have it.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::{Response, StatusCode};
use pickd::Code;

use crate::headers::DROPPED_REASON;

/// A request that does not go to an engine, or got no answer there.
pub struct Refusal {
    status: StatusCode,
    reason: &'static str, // for machines; empty: none
    words: String,
}

impl Refusal {
    pub fn new(status: StatusCode, words: impl Into<String>) -> Refusal {
        Refusal { status, reason: "", words: words.into() }
    }

    pub fn respond(&self) -> Response<Full<Bytes>> {
        let kind = match self.status.as_u16() {
            404 => "NotFoundError",
            429 => "RateLimitError",
            400..=499 => "BadRequestError",
            _ => "ServiceUnavailableError",
        };
        let text = format!(
            "{{\"error\":{{\"message\":\"{}\",\"type\":\"{kind}\",\"code\":{}}}}}\n",
            quoted(&self.words),
            self.status.as_u16()
        );
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, "application/json".parse().expect("a header's value"));
        if !self.reason.is_empty() {
            headers.insert(DROPPED_REASON, self.reason.parse().expect("a header's value"));
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(RETRY_AFTER, "1".parse().expect("a header's value"));
        }
        response
    }
}

impl From<pickd::Error> for Refusal {
    fn from(error: pickd::Error) -> Refusal {
        let reason = match error.code() {
            Code::Shed | Code::Limited => "rejected-saturated",
            Code::NoEndpoint | Code::NotConnected => "rejected-no-endpoints",
            Code::Timeout => "rejected-ttl-expired",
            Code::Closed => "rejected-shutting-down",
            _ => "",
        };
        // 504 would say that an engine was asked.
        let status = match error.http_status() {
            504 => StatusCode::SERVICE_UNAVAILABLE,
            status => StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE),
        };
        Refusal { status, reason, words: error.to_string() }
    }
}

/// The inside of a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_end_the_string_that_they_stand_in() {
        assert_eq!(quoted("a \"b\" \\ c\n"), "a \\\"b\\\" \\\\ c ");
    }

    #[test]
    fn who_is_shed_is_told_when_to_come_again() {
        let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "x").respond();
        assert_eq!(refusal.headers()[RETRY_AFTER], "1");
        assert!(Refusal::new(StatusCode::NOT_FOUND, "x")
            .respond()
            .headers()
            .get(RETRY_AFTER)
            .is_none());
    }
}
