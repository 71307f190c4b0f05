//! What happens to a request: read it, pick, send it to the engine, or to the next one where that
//! fails before the caller has seen a byte, and relay the answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use pickd::body::{Head, Prompt};
use pickd::{AsyncClient, Options, Pick};

use crate::arguments::Arguments;
use crate::body::{self, Pool};
use crate::headers;
use crate::refusal::Refusal;
use crate::relay::Relay;
use crate::served::Served;
use crate::Failure;

type Answer = Response<Either<Relay, Full<Bytes>>>;

/// All that requests share.
pub struct Proxy {
    client: AsyncClient,
    readers: std::sync::Arc<Pool>,
    engines: Client<HttpConnector, Full<Bytes>>,
    pick_timeout: Duration,
    limits: body::Limits,
    attempts: u32,
    tenant_header: Option<HeaderName>,
    objectives: HashMap<String, i32>,
    attribute_headers: Vec<HeaderName>,
}

impl Proxy {
    /// Connects to pickd.
    pub async fn open(arguments: &Arguments) -> Result<Proxy, Failure> {
        let name = |text: &String| {
            text.parse::<HeaderName>().map_err(|error| format!("the header {text:?}: {error}"))
        };
        let more = arguments.attribute_headers.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        let own = headers::ATTRIBUTES.iter().map(|name| HeaderName::from_static(name));
        let mut options = Options::new().name("rust-proxy");
        if let Some(socket) = &arguments.socket {
            options = options.socket(socket);
        }
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(arguments.connect_timeout));
        connector.set_nodelay(true);
        let engines = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(20))
            .build(connector);
        Ok(Proxy {
            client: options.open_async().await?,
            readers: Pool::new(arguments.body_max_bytes),
            engines,
            pick_timeout: arguments.pick_timeout,
            limits: body::Limits {
                bytes: arguments.body_max_bytes,
                timeout: arguments.read_timeout,
                room: body::room(arguments.bodies_max_bytes),
            },
            attempts: arguments.attempts,
            tenant_header: arguments.tenant_header.as_ref().map(name).transpose()?,
            objectives: arguments.objectives.clone(),
            attribute_headers: own.chain(more).collect(),
        })
    }

    /// Answers a request. Dropped before that (the caller went away), it leaves nothing reserved
    /// and closes the connection to the engine.
    pub async fn serve(&self, request: Request<Incoming>) -> Answer {
        match self.try_to_serve(request).await {
            Ok(answer) => answer.map(Either::Left),
            Err(refusal) => refusal.respond().map(Either::Right),
        }
    }

    async fn try_to_serve(&self, request: Request<Incoming>) -> Result<Response<Relay>, Refusal> {
        let (parts, incoming) = request.into_parts();
        if parts.method == Method::CONNECT {
            let words = "this is a proxy before engines, not one to reach others by";
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, words));
        }
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        // "*" would make the port of the engine's address another.
        if !path.starts_with('/') {
            let words = "the target of a request is a path here, or a URL";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, words));
        }
        let mut readers = self.readers.get()?;
        let mut head = Head::new(path);
        for (name, value) in &parts.headers {
            head = head.header(name.as_str(), value.as_bytes());
        }
        if let Some(tenant) = self.tenant_header.as_ref().and_then(|name| parts.headers.get(name)) {
            head = head.tenant(tenant.as_bytes());
        }
        let (sent, held) = body::read(&mut readers.body, head, incoming, &self.limits).await?;
        let wanted = readers.body.request(Prompt::Longest)?;
        let pick = self.pick(wanted, &parts.headers).await?;
        let api = readers.body.info()?.api;
        let mut served = Served::new(&self.client, &pick, readers, held);

        let mut head = headers::for_engine(&parts.headers);
        for (name, part) in [(headers::PREFILL, pick.prefill()), (headers::ENCODE, pick.encode())] {
            let address = part.and_then(|part| HeaderValue::from_str(host_port(part.address)).ok());
            if let Some(address) = address {
                head.insert(name, address);
            }
        }
        let engine_request = |address: &str| -> Result<Request<Full<Bytes>>, Failure> {
            let mut request = Request::new(Full::new(sent.clone()));
            *request.method_mut() = parts.method.clone();
            *request.uri_mut() = format!("{}{path}", base_of(address)).parse::<Uri>()?;
            *request.headers_mut() = head.clone();
            bound_interim_answers(&mut request);
            Ok(request)
        };
        let (answer, name) = self.first_answer(&pick, engine_request, &mut served).await?;
        let (mut parts, incoming) = answer.into_parts();
        // The caller's connection is its own: hyper answers in the version that was asked in.
        parts.version = Version::HTTP_11;
        headers::take_hop_by_hop(&mut parts.headers);
        served.answers(api, parts.status.as_u16(), &parts.headers);
        if let Ok(name) = HeaderValue::from_str(name) {
            parts.headers.insert(headers::SERVED_BY, name);
        }
        Ok(Response::from_parts(parts, Relay::new(incoming, served)))
    }

    async fn pick<'a>(
        &'a self,
        wanted: pickd::Request<'a>,
        from: &'a HeaderMap,
    ) -> Result<Pick, Refusal> {
        let mut wanted = wanted.endpoints_max(self.attempts);
        let mut attributes = 0;
        for name in &self.attribute_headers {
            let Some(value) = from.get(name) else { continue };
            let fits = value.len() <= headers::ATTRIBUTE_BYTES_MAX;
            if fits && attributes < headers::ATTRIBUTES_MAX {
                wanted = wanted.attribute(name.as_str(), value.as_bytes());
                attributes += 1;
            }
        }
        let objective = headers::OBJECTIVES.iter().find_map(|name| from.get(*name)?.to_str().ok());
        if let Some(priority) = objective.and_then(|name| self.objectives.get(name)) {
            wanted = wanted.priority(*priority);
        }
        Ok(self.client.pick_within(&wanted, self.pick_timeout).await?)
    }

    /// Asks the endpoints of a pick in order, until one answers: the head of its answer, and its
    /// name. The caller has not seen a byte until then, so going on is safe.
    async fn first_answer<'a>(
        &self,
        pick: &'a Pick,
        request: impl Fn(&str) -> Result<Request<Full<Bytes>>, Failure>,
        served: &mut Served,
    ) -> Result<(Response<Incoming>, &'a str), Refusal> {
        let mut why = String::new();
        for (at, endpoint) in pick.endpoints().take(self.attempts as usize).enumerate() {
            if at > 0 {
                served.goes_on_at(endpoint.address);
            }
            // What cannot even be sent is the request's fault, or the address's: nothing is said of
            // the engine.
            let request = request(endpoint.address).map_err(|error| {
                let words = format!("this cannot be sent to {:?}: {error}", endpoint.address);
                Refusal::new(StatusCode::BAD_GATEWAY, words)
            })?;
            match self.engines.request(request).await {
                // What nobody asked for, as an upgrade is not passed on.
                Ok(answer) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    why = format!("{}: it switched protocols unasked", endpoint.name);
                }
                Ok(answer) => return Ok((answer, endpoint.name)),
                Err(error) => why = format!("{}: {}", endpoint.name, with_causes(&error)),
            }
        }
        served.failed();
        Err(Refusal::new(StatusCode::BAD_GATEWAY, format!("no engine answered; at last {why}")))
    }
}

/// An engine may send interim answers before its real one; one that sends nothing else would keep a
/// thread of the runtime for as long as it does.
fn bound_interim_answers<B>(request: &mut Request<B>) {
    const INTERIM_MAX: u32 = 16;
    let came = AtomicU32::new(0);
    hyper::ext::on_informational(request, move |_| {
        // Partner: itself.
        if came.fetch_add(1, Ordering::Relaxed) == INTERIM_MAX {
            // In the task of the connection, which is all that ends by it: hyper asks for nothing
            // that this could return, and tells who waits for the answer.
            std::panic::resume_unwind(Box::new("too many interim answers"));
        }
    });
}

/// An endpoint's address as the start of a URL; addresses are "host:port" or URLs.
fn base_of(address: &str) -> String {
    if address.contains("://") {
        return address.trim_end_matches('/').to_owned();
    }
    format!("http://{address}")
}

fn host_port(address: &str) -> &str {
    let behind = address.split_once("://").map_or(address, |(_, behind)| behind);
    behind.split('/').next().unwrap_or(behind)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_be_urls() {
        assert_eq!(base_of("10.0.0.1:8000"), "http://10.0.0.1:8000");
        assert_eq!(base_of("http://engine:8000/"), "http://engine:8000");
        assert_eq!(host_port("http://engine:8000/x"), "engine:8000");
        assert_eq!(host_port("engine:8000"), "engine:8000");
    }
}
