//! rust-proxy: an HTTP reverse proxy for inference engines that asks pickd where each request goes.
//! Arguments, listening and the end; what happens to a request is in proxy.rs.

mod arguments;
mod body;
mod headers;
mod proxy;
mod refusal;
mod relay;
mod served;

use std::process::ExitCode;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::Semaphore;

use arguments::Arguments;
use proxy::Proxy;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments = match arguments::parse(lexopt::Parser::from_env()) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return ExitCode::SUCCESS, // help was asked for
        Err(error) => {
            eprintln!("rust-proxy: {error}\nrust-proxy --help lists what there is");
            return ExitCode::from(2);
        }
    };
    let runtime = if arguments.threads == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        if arguments.threads != 0 {
            builder.worker_threads(arguments.threads);
        }
        builder.enable_all().build()
    };
    match runtime.map_err(Failure::from).and_then(|runtime| runtime.block_on(serve(arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rust-proxy: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(arguments: Arguments) -> Result<(), Failure> {
    let (mut interrupted, mut terminated) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let listener = TcpListener::bind(&arguments.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", arguments.listen))?;
    let proxy = Arc::new(Proxy::open(&arguments).await?);
    println!("listening on {}", listener.local_addr()?);

    let room = Arc::new(Semaphore::new(arguments.connections_max));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &room) => accepted,
            _ = interrupted.recv() => break,
            _ = terminated.recv() => break,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Of one connection, or for want of descriptors: the next may do better.
                eprintln!("rust-proxy: accept: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            }
        };
        // Pieces of a stream go out as they come.
        let _ = stream.set_nodelay(true);
        let proxy = proxy.clone();
        let service = service_fn(move |request| {
            let proxy = proxy.clone();
            async move { Ok::<_, std::convert::Infallible>(proxy.serve(request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(arguments.read_timeout)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A caller that breaks off is not a fault of the proxy.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    eprintln!("rust-proxy: stopping; what is under way has {:?} to end", arguments.drain_timeout);
    let under_way = arguments.connections_max - room.available_permits();
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(arguments.drain_timeout) => {
            eprintln!("rust-proxy: of {under_way} connections not all have ended in time");
        }
        // A second signal means now.
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    Ok(())
}

/// Accepts when there is room for one more connection.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> std::io::Result<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = room.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}
