"""HTTP API of the daemon: health, metrics, status, flows.

One application, served twice: on the admin address it only reads, on the unix socket, whose file
mode says who may, it also deletes and drains. JSON; errors are
`{"error": {"type", "code", "message", "param"}}`.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from relayctl.control.metrics import CONTENT_TYPE, RelayCollector, exposition
from relayctl.control.relay import Relay
from relayctl.inspect.records import Record, reason_records
from relayctl.wire.address import Address, AddressError, parse

PIECE = 256  # flows written at once


class ApiError(HTTPException):
    """An answer other than success. `code` is for programs, `detail` for people."""

    def __init__(self, status: int, code: str, detail: str, param: str | None = None) -> None:
        super().__init__(status, detail)
        self.code = code
        self.param = param


def create_app(relay: Relay, *, writable: bool) -> Starlette:
    """The application. `writable` adds what changes something."""
    routes = _Reads(relay).routes()
    if writable:
        routes += _Writes(relay).routes()
    return Starlette(routes=routes, exception_handlers={HTTPException: _render_error})


class _Reads:
    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._collector = RelayCollector(relay.snapshot)

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Route("/metrics", self.metrics),
            Route("/v1/status", self.status),
            Route("/v1/flows", self.flows),
            Route("/v1/flows/{client}", self.flow),
            Route("/v1/reasons", self.reasons),
            Route("/v1/nexthops", self.nexthops),
        ]

    async def healthz(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(self, _: Request) -> Response:
        faults = self._relay.faults()
        text = "".join(f"{fault}\n" for fault in faults)
        return PlainTextResponse(text or "ready\n", 503 if faults else 200)

    async def metrics(self, _: Request) -> Response:
        return Response(exposition(self._collector), media_type=CONTENT_TYPE)

    async def status(self, _: Request) -> Response:
        return JSONResponse(self._relay.status())

    async def flows(self, _: Request) -> Response:
        return StreamingResponse(_flow_list(self._relay.flows()), media_type="application/json")

    async def flow(self, request: Request) -> Response:
        client = _client(request)
        found = self._relay.flow(client, request.query_params.get("vip"))
        if found is None:
            raise _no_flow(request)
        return JSONResponse(found)

    async def reasons(self, _: Request) -> Response:
        return JSONResponse({"reasons": reason_records(self._relay.reasons())})

    async def nexthops(self, _: Request) -> Response:
        return JSONResponse({"nexthops": self._relay.nexthops()})


class _Writes:
    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def routes(self) -> list[Route]:
        return [
            Route("/v1/flows/{client}", self.delete, methods=["DELETE"]),
            Route("/v1/drain", self.drain, methods=["PUT"]),
            Route("/v1/drain", self.undrain, methods=["DELETE"]),
        ]

    async def delete(self, request: Request) -> Response:
        vip = request.query_params.get("vip")
        deleted = await self._relay.delete(_client(request), vip)
        if deleted is None:
            raise ApiError(503, "busy", "the packet process does not take commands; try again")
        if not deleted:
            raise _no_flow(request)
        return Response(status_code=204)

    async def drain(self, _: Request) -> Response:
        """Fail /readyz and change nothing else: new calls are still served."""
        self._relay.draining = True
        return Response(status_code=204)

    async def undrain(self, _: Request) -> Response:
        self._relay.draining = False
        return Response(status_code=204)


def _client(request: Request) -> Address:
    try:
        return parse(request.path_params["client"])
    except AddressError as error:
        raise ApiError(400, "bad_address", str(error), "client") from None


async def _flow_list(records: Iterator[Record]) -> AsyncIterator[str]:
    """A table of any size, in pieces: nothing else waits for it."""
    yield '{"flows":['
    separator = ""
    while piece := list(itertools.islice(records, PIECE)):
        yield separator + ",".join(json.dumps(record) for record in piece)
        separator = ","
        await asyncio.sleep(0)
    yield "]}"


def _no_flow(request: Request) -> ApiError:
    client = request.path_params["client"]
    vip = request.query_params.get("vip")
    where = f" with VIP {vip}" if vip else ""
    return ApiError(404, "no_flow", f"{client} has no flow{where}", "client")


async def _render_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body: dict[str, Any] = {
        "type": "invalid_request_error" if error.status_code < 500 else "server_error",
        "code": getattr(error, "code", None),
        "message": error.detail,
        "param": getattr(error, "param", None),
    }
    return JSONResponse({"error": body}, error.status_code)
