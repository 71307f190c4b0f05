//! Asks the [pickd](https://github.com/pickd/pickd) daemon of this node which endpoint should serve
//! an LLM inference request.
//!
//! [`Client`] waits in the calling thread, [`AsyncClient`] (feature `async`, on by default) in a
//! tokio runtime. Both may be used by any number of threads or tasks at once.
//!
//! ```
//! use std::time::Duration;
//!
//! # #[cfg(feature = "async")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), pickd::Error> {
//! # let prompt = "Once upon a time";
//! # if std::env::var_os("PICKD_SOCKET").is_none() { return Ok(()) } // no daemon to ask
//! let client = pickd::AsyncClient::open().await?;
//!
//! let request = pickd::Request::new().model("llama-3.1-70b").text(prompt).stream(true);
//! let pick = client.pick_within(&request, Duration::from_millis(100)).await?;
//! // Send the request to pick.address(); the others of pick.endpoints() are where to try next.
//! client.report(&pickd::Report::first_token(pick.ticket()))?;
//! client.report(&pickd::Report::done(pick.ticket()).prompt_tokens(812).output_tokens(120))?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "async"))]
//! # fn main() {}
//! ```
//!
//! # Reports
//!
//! A pick reserves load at its endpoint. Report on its ticket what becomes of the request: the
//! first token frees the reserved prompt tokens, its end the rest, and the engine's usage teaches
//! the daemon how long requests take. Where another endpoint of the pick had to step in, say so
//! with [`Report::fallback`]. Without reports a reservation ends with its lease. Dropping a
//! [`Pick`] reports nothing; dropping the *future* of a pick takes it back.
//!
//! # When the daemon is away
//!
//! Picks go on: libpickd still sees the state that the daemon left and picks from it. Such a pick
//! [is degraded](Pick::is_degraded). A deadline (`pick_within`) also covers a daemon that is there
//! and does not answer: the degraded pick comes shortly before it.
//!
//! # Errors
//!
//! What libpickd returns comes as an [`Error`] with a [`Code`]; [`Error::http_status`] is what a
//! gateway answers. No call panics, but for a future that is polled after it was ready, and for
//! `open_async` outside of a runtime; nothing unwinds into C, which never calls back.
//!
//! # Fork
//!
//! In a child of fork() every call on the parent's client fails with [`Code::Forked`], and dropping
//! it there releases the child's memory only. Tokio itself does not survive a fork.
//!
//! # Bodies
//!
//! With the feature `body`, [`mod@body`] reads the bodies of OpenAI, Anthropic, SGLang and vLLM
//! requests into a [`Request`], and answers into a [`Report`].
//!
//! # Building
//!
//! The crate links `libpickd.so.0` and finds it with pkg-config under the name `pickd`, or in the
//! directory that `PICKD_LIB_DIR` names. Against a build tree of pickd set `PKG_CONFIG_PATH` to
//! `build/release/pkgconfig` and `LD_LIBRARY_PATH` to `build/release/lib`.

mod client;
mod endpoints;
mod error;
mod options;
mod pick;
mod pool;
mod report;
mod request;

#[cfg(feature = "async")]
mod async_client;
#[cfg(feature = "async")]
mod driver;
#[cfg(feature = "async")]
mod queue;
#[cfg(any(feature = "async", test))]
mod spin;
#[cfg(feature = "async")]
mod wait;

#[cfg(feature = "body")]
pub mod body;

#[cfg(feature = "async")]
pub use async_client::AsyncClient;
pub use client::{Client, Info};
pub use endpoints::EndpointSpec;
pub use error::{Code, Error};
pub use options::Options;
pub use pick::{Endpoint, Pick, Reason, Role, Ticket};
pub use report::{Report, ReportKind};
pub use request::Request;
#[cfg(feature = "async")]
pub use wait::PickFuture;

/// Version of this crate, which is that of the pickd release it belongs to.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
