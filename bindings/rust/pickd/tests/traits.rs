//! What may be sent and shared between threads: stated here, and checked when this compiles.

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn lives_long<T: 'static>() {}

#[test]
fn clients_and_what_they_hand_out_go_between_threads() {
    send::<pickd::Client>();
    sync::<pickd::Client>();
    lives_long::<pickd::Client>();
    send::<pickd::Pick>();
    sync::<pickd::Pick>();
    lives_long::<pickd::Pick>();
    send::<pickd::Request<'_>>();
    sync::<pickd::Request<'_>>();
    send::<pickd::Report>();
    sync::<pickd::Report>();
    send::<pickd::Error>();
    sync::<pickd::Error>();
    lives_long::<pickd::Error>();
    send::<pickd::Options>();
    sync::<pickd::Options>();
    send::<pickd::EndpointSpec>();
    sync::<pickd::EndpointSpec>();
}

#[cfg(feature = "async")]
#[test]
fn async_clients_and_their_futures_go_between_threads() {
    fn spawned(_: impl std::future::Future + Send + 'static) {}
    send::<pickd::AsyncClient>();
    sync::<pickd::AsyncClient>();
    lives_long::<pickd::AsyncClient>();
    send::<pickd::PickFuture<'_>>();
    sync::<pickd::PickFuture<'_>>();
    // What a runtime of many threads asks of a task, with a borrow of the pick across a wait.
    fn task(client: pickd::AsyncClient) -> impl std::future::Future + Send + 'static {
        async move {
            let request = pickd::Request::new().model("m");
            let pick = client.pick(&request).await?;
            let address = pick.address();
            tokio::task::yield_now().await;
            client.report(&pickd::Report::fallback(pick.ticket(), address))
        }
    }
    let _: fn(pickd::AsyncClient) = |client| spawned(task(client));
}

#[cfg(feature = "body")]
#[test]
fn readers_of_bodies_go_from_thread_to_thread() {
    send::<pickd::body::Body>();
    send::<pickd::body::Answer>();
    send::<pickd::body::Counters>();
    sync::<pickd::body::Counters>();
}
