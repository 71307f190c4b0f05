//! Names of headers, and which go on to the engine. Knows no request.

use hyper::header::{HeaderMap, HeaderName, CONNECTION, HOST};

/// Of a request that is split: who computes the prompt.
pub const PREFILL: &str = "x-prefiller-host-port";
/// Of such a request: who turns images and the like into embeddings. A list, of one here.
pub const ENCODE: &str = "x-encoder-hosts-ports";
/// What only who picks may say to an engine.
const PICKERS: [&str; 4] =
    [PREFILL, ENCODE, "x-kv-cache-source-host-port", "x-data-parallel-host-port"];
/// Why a request was refused, for machines.
pub const DROPPED_REASON: &str = "x-llm-d-request-dropped-reason";
/// Which endpoint served, for whoever looks into a case.
pub const SERVED_BY: &str = "x-pickd-endpoint";
/// Names the objective whose priority the request has.
pub const OBJECTIVES: [&str; 2] = ["x-llm-d-inference-objective", "x-gateway-inference-objective"];
/// What pickd itself reads as attributes.
pub const ATTRIBUTES: [&str; 9] = [
    "x-llm-d-slo-ttft-ms",
    "x-llm-d-slo-itl-ms",
    "x-llm-d-slo-tpot-ms",
    "x-slo-ttft-ms",
    "x-slo-itl-ms",
    "x-slo-tpot-ms",
    "epp-profile",
    "x-session-token",
    "x-pickd-affinity-ttl",
];
/// Attributes that a pick takes, and the bytes of the value of one.
pub const ATTRIBUTES_MAX: usize = 32;
pub const ATTRIBUTE_BYTES_MAX: usize = 255;

/// Headers that are between two neighbours only.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Takes out what must not go on to the next neighbour: these, and those that `Connection` names.
pub fn take_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    for name in named {
        headers.remove(name);
    }
}

/// Those of a request that go to an engine. Its address and the body's length are set anew, and
/// what only the proxy may say is not taken from the caller.
pub fn for_engine(from: &HeaderMap) -> HeaderMap {
    let mut headers = from.clone();
    take_hop_by_hop(&mut headers);
    headers.remove(HOST);
    headers.remove("content-length");
    headers.remove("expect");
    for name in PICKERS {
        headers.remove(name);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_neighbours_does_not_go_on() {
        let mut from = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("transfer-encoding", "chunked"),
            ("x-prefiller-host-port", "evil:1"),
            ("x-kv-cache-source-host-port", "evil:1"),
            ("x-data-parallel-host-port", "evil:1"),
            ("x-encoder-hosts-ports", "evil:1"),
            ("host", "proxy"),
            ("authorization", "Bearer t"),
        ] {
            from.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let sent = for_engine(&from);
        assert_eq!(sent.len(), 1);
        assert_eq!(sent["authorization"], "Bearer t");
    }
}
