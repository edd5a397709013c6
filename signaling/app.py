"""The HTTP application: faces over one core, and every error in one shape.

Builds, and does nothing else: configuration, keys, HTTP client, dice and log come in.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Mapping

import httpx
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse

from relayctl.wire import address
from relayctl.wire.route_token import Key
from signaling.access import Access
from signaling.calls import Calls
from signaling.config import SignalingConfig
from signaling.control import Control
from signaling.faces import json_offer, openai, ops, page
from signaling.flow_path import FlowPaths
from signaling.front import Front
from signaling.location import Locator
from signaling.metrics import Metrics
from signaling.refusal import Code, Refused
from signaling.registry import Registry
from signaling.request_log import REQUEST_ID, RequestLog
from signaling.steering import Transceiver

ALLOWED_HEADERS = (
    *("authorization", "content-type", "openai-beta", "x-openai-agents-sdk"),
    "x-request-id",
)
EXPOSED_HEADERS = ("Location", "Retry-After", REQUEST_ID)
PREFLIGHT_S = 600  # a browser need not ask again for so long


def create_app(
    config: SignalingConfig,
    client: httpx.AsyncClient,
    *,
    keys: Mapping[int, Key],
    dice: random.Random | None = None,
    log: logging.Logger | None = None,
) -> FastAPI:
    """The application. Its lifespan asks the transceivers for readiness and closes `client`."""
    log = log or logging.getLogger("signaling")
    metrics = Metrics(CollectorRegistry())
    control = Control(client, config.control_token)
    ingresses = tuple(section.ingress() for section in config.ingresses)
    clusters = config.routing()

    def changed(transceiver: Transceiver) -> None:
        state = "ready" if transceiver.ready else f"not ready: {transceiver.reason}"
        log.info("transceiver %s is %s", address.render(transceiver.endpoint), state)
        metrics.transceivers_ready.set(sum(t.ready for t in registry.transceivers()))

    registry = Registry(control, config.endpoints, clusters, changed)
    calls = Calls(control, registry, ingresses, keys, clusters, dice or random.SystemRandom())

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await registry.refresh()
        asking = asyncio.create_task(registry.run())
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await client.aclose()

    app = FastAPI(
        title="Ferryline signaling",
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,  # those pages load code from elsewhere; /openapi.json stays
        redoc_url=None,
    )
    app.state.registry = registry
    front = Front(calls, Access(), Locator(), metrics)
    app.include_router(openai.routes(front, FlowPaths(client, ingresses)))
    app.include_router(json_offer.routes(front))
    app.include_router(ops.routes(calls, metrics))
    app.include_router(page.routes())
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_middleware(RequestLog, metrics=metrics, log=log)  # the last one added is outermost
    app.add_middleware(
        CORSMiddleware,
        allow_origins=config.cors_origins,
        allow_methods=("GET", "POST", "PATCH", "DELETE", "OPTIONS"),
        allow_headers=ALLOWED_HEADERS,
        expose_headers=EXPOSED_HEADERS,
        max_age=PREFLIGHT_S,
    )
    return app


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return JSONResponse(error.body(), error.status, error.headers())


async def _http_exception(request: Request, error: Exception) -> JSONResponse:
    """What the router itself refuses."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        refused = Refused(Code.METHOD_NOT_ALLOWED, f"{request.method} is not for this path")
    else:
        refused = Refused(Code.NO_SUCH_ROUTE, "nothing is served at this path")
    return JSONResponse(refused.body(), refused.status, dict(error.headers or {}))
