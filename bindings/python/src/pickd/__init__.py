"""pickd asks the pickd daemon which endpoint should serve an LLM inference request.

An AsyncClient is a connection for an asyncio event loop, a Client one for threads:

    async with pickd.AsyncClient() as client:
        try:
            pick = await client.pick(pickd.Request(model="llama-3.1-70b", text=prompt), timeout=0.1)
        except pickd.Error as error:
            return web.Response(status=pickd.http_status(error), text=str(error))
        # send the request to pick.address; the others in pick.endpoints are where to try next

Reports

    A pick reserves load at its endpoint. Report on its ticket what becomes of the request: the first token
    (ReportKind.FIRST_TOKEN) frees the reserved prompt tokens, its end (DONE, FAILED, CANCELLED) the rest, and the
    engine's usage teaches the daemon how long requests take. Where another endpoint of the pick had to step in, say so
    with FALLBACK. Without reports a reservation ends with its lease.

When the daemon is away

    Picks go on: libpickd still sees the state that the daemon left and picks from it. Such a pick is `degraded`. A
    timeout also covers a daemon that is there and does not answer.

Errors

    What libpickd returns comes as an Error: NoEndpointError (503), ShedError (429), NotFoundError (404) and so on;
    http_status() is what a gateway answers.

Bodies

    pickd.body reads request bodies of the OpenAI, Anthropic, SGLang and vLLM APIs into requests, and answers into
    reports.
"""
from . import body
from .aio import AsyncClient
from .answer import Endpoint, Pick, Reason
from .client import Client
from .errors import (AccessError, ClosedError, Error, ExistsError, ForkedError, InvalidError, LimitedError,
                     NoEndpointError, NotConnectedError, NotFoundError, NotPermittedError, OutOfMemoryError,
                     ProtocolError, ShedError, StaleError, TimedOutError, TooBigError, TooManyError, VersionError,
                     http_status)
from .handle import Info
from .request import EndpointSpec, Extra, Report, ReportKind, Request, Role, Ticket

__version__ = "0.1.0"

__all__ = [
    "AccessError", "AsyncClient", "Client", "ClosedError", "Endpoint", "EndpointSpec", "Error", "ExistsError", "Extra",
    "ForkedError", "Info", "InvalidError", "LimitedError", "NoEndpointError", "NotConnectedError", "NotFoundError",
    "NotPermittedError", "OutOfMemoryError", "Pick", "ProtocolError", "Reason", "Report", "ReportKind", "Request",
    "Role", "ShedError", "StaleError", "Ticket", "TimedOutError", "TooBigError", "TooManyError", "VersionError",
    "body", "http_status",
]
