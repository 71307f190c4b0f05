"""What an asyncio router does with a request: router.py PATH ANSWER_FILE <BODY

Reads the body, picks, "sends" it to the winner or to a fallback, and reports what the answer, which stands in a file
here, tells.
"""
import asyncio
import sys
from typing import AsyncIterator

import pickd
from pickd import body


async def serve(client: pickd.AsyncClient, reader: body.Reader, path: str, data: bytes, answer_file: str) -> None:
    info = reader.read(path, data, {"x-request-id": "1"})  # no error: what cannot be read is picked by load
    pick = await client.pick(reader.request(), timeout=0.1)
    ticket, endpoint = pick.ticket, pick.endpoints[0]
    answer = body.Answer()
    try:
        for endpoint in pick.endpoints:
            if endpoint is not pick.endpoints[0]:
                client.report(pickd.Report(ticket, pickd.ReportKind.FALLBACK, endpoint=endpoint.name))
            try:
                pieces = await send(endpoint.address, answer_file)
                break
            except ConnectionError:  # the next one, as nothing has gone to the caller yet
                continue
        else:
            client.report(pickd.Report(ticket, pickd.ReportKind.FAILED))
            raise pickd.NoEndpointError("send")
        answer.begin(info.api, 200, {"content-type": "text/event-stream"})
        async for piece in pieces:
            if answer.add(piece) & body.News.FIRST_TOKEN:
                client.report(answer.report(ticket))
            # ... and on to the caller ...
    except asyncio.CancelledError:  # the caller went away
        client.report(pickd.Report(ticket, pickd.ReportKind.CANCELLED))
        raise
    answer.end()
    report = answer.report(ticket)
    client.report(report)
    print(f"{info.api.name} to {endpoint.address}, {endpoint.match_tokens} of {pick.prompt_tokens} tokens cached; "
          f"{report.kind.name} with {report.output_tokens} tokens")


async def send(address: str, answer_file: str) -> AsyncIterator[bytes]:
    """Stands in for an HTTP client: connects, then gives pieces of the engine's answer."""
    if address == "127.0.0.1:1":
        raise ConnectionRefusedError(address)

    async def pieces() -> AsyncIterator[bytes]:
        with open(answer_file, "rb") as file:
            while piece := file.read(100):
                yield piece

    return pieces()


async def main() -> int:
    path, answer_file = sys.argv[1:]
    data = sys.stdin.buffer.read()
    async with pickd.AsyncClient() as client:
        try:
            await serve(client, body.Reader(), path, data, answer_file)
        except pickd.Error as error:
            print(f"{error}: HTTP status {pickd.http_status(error)}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
