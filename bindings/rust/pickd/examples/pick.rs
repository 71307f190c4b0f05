//! Asks pickd for an endpoint and reports on it: pick MODEL PROMPT
use std::time::Duration;

use pickd::{AsyncClient, Report, Request};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, prompt] = arguments.as_slice() else {
        return Err("usage: pick MODEL PROMPT".into());
    };
    let client = AsyncClient::open().await?; // $PICKD_SOCKET, else /run/pickd/pickd.sock

    let request = Request::new().model(model).text(prompt);
    let pick = match client.pick_within(&request, Duration::from_millis(100)).await {
        Ok(pick) => pick,
        Err(error) => return Err(format!("{error}: HTTP status {}", error.http_status()).into()),
    };
    let winner = pick.endpoints().next().expect("a pick lists one endpoint at least");
    let (cached, prompt_tokens) = (winner.match_tokens, pick.prompt_tokens());
    println!("{} ({}), {cached} of {prompt_tokens} tokens cached", pick.address(), pick.reason());

    // ... send the request there, or to the next of pick.endpoints() where that fails ...

    client.report(&Report::done(pick.ticket()).output_tokens(12))?;
    Ok(())
}
