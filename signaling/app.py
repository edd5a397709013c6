"""The HTTP application: faces over one core, and every error in one shape.

Builds, and does nothing else: configuration, keys, HTTP client, dice and log come in.
"""

import contextlib
import importlib.metadata
import logging
import random
from collections.abc import AsyncIterator, Mapping

import httpx
from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.routing import Match

from relayctl.wire import redis_client
from relayctl.wire.redis_client import Client
from relayctl.wire.route_token import Key
from signaling.access import config as access_config
from signaling.access.access import Access
from signaling.access.ephemeral_keys import InMemory, InRedis
from signaling.calls import Calls
from signaling.config import SignalingConfig
from signaling.faces import (
    client_secrets,
    described,
    json_offer,
    openai,
    ops,
    page,
    pipecat,
    pipecat_page,
    sideband,
    whip,
)
from signaling.faces.bare import Shortcut, refusal
from signaling.fleet.control import INGRESS, STEERING, Control
from signaling.fleet.control_http import Exchange
from signaling.fleet.fleet import FleetWatch
from signaling.fleet.flow_path import FlowPaths
from signaling.fleet.location import GeoReader, Locator, client_of
from signaling.front import Front
from signaling.http.request_log import REQUEST_ID, RequestLog
from signaling.metrics import Metrics
from signaling.refusal import Code, Refused
from signaling.sidebands import Sidebands

ALLOWED_HEADERS = (
    *("authorization", "content-type", "openai-beta", "x-openai-agents-sdk"),
    *("x-request-id", "if-match", "etag"),
)
EXPOSED_HEADERS = (
    *("Location", "Retry-After", REQUEST_ID, INGRESS, STEERING),
    *("ETag", "Link", "Accept-Patch", "Accept-Post", "Access-Control-Allow-Methods"),
)
METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS")
PREFLIGHT_S = 600  # a browser need not ask again for so long


def create_app(
    config: SignalingConfig,
    client: httpx.AsyncClient,
    *,
    exchange: Exchange,
    keys: Mapping[int, Key],
    redis: Client | None = None,
    geoip: GeoReader | None = None,
    dice: random.Random | None = None,
    log: logging.Logger | None = None,
) -> FastAPI:
    """The application. Its lifespan asks the transceivers for readiness and closes `client`
    (of the relays), `exchange` (of the transceivers) and `redis`."""
    log = log or logging.getLogger("signaling")
    metrics = Metrics(CollectorRegistry())
    control = Control(exchange, config.control_token)
    watch = FleetWatch(config, control, client, redis, metrics, log)
    calls = Calls(
        control,
        watch.registry,
        watch.fleet,
        keys,
        config.routing(),
        dice or random.Random(),
        metrics.count_placed,
    )

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            async with watch.watching():
                yield
        finally:
            exchange.close()
            await client.aclose()
            if redis is not None:
                await redis_client.close(redis)

    app = FastAPI(
        title="Ferryline signaling",
        version=importlib.metadata.version("ferryline"),
        description=described.SERVICE,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,  # those pages load code from elsewhere; /openapi.json stays
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # paths are secrets
    )
    app.state.registry = watch.registry
    rules = access_config.rules(config)

    def whose(request: HTTPConnection) -> str:
        return client_of(request, config.trusted_proxies)

    access = Access(rules, InRedis(redis) if redis is not None else InMemory(), whose)
    locator = Locator(
        trusted=config.trusted_proxies,
        geoip=geoip,
        default=config.default_location.place,
        regions=config.regions,
        ignored=lambda source: metrics.location_ignored.labels(source).inc(),
    )
    front = Front(calls, access, locator, metrics)
    realtime = openai.routes(front, FlowPaths(client, watch.ingresses))
    app.include_router(realtime)
    app.include_router(sideband.routes(front, Sidebands(config.control_token)))
    app.include_router(client_secrets.routes(front))
    app.include_router(json_offer.routes(front))
    app.include_router(pipecat.routes(front, config.ice_servers))
    app.include_router(whip.routes(front, config.ice_servers))
    app.include_router(ops.routes(calls, metrics))
    app.include_router(page.routes())
    if (prebuilt := pipecat_page.page()) is not None:
        app.mount(pipecat_page.AT, prebuilt)
    described.document(app, keys_wanted=not rules.open)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_exception)
    # the last one added is outermost
    app.add_middleware(Shortcut, routes=realtime.routes)
    app.add_middleware(RequestLog, metrics=metrics, log=log, client_of=whose)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=config.cors_origins,
        allow_methods=[method for method in METHODS if method != "HEAD"],
        allow_headers=ALLOWED_HEADERS,
        expose_headers=EXPOSED_HEADERS,
        max_age=PREFLIGHT_S,
    )
    return app


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return refusal(error)


async def _http_exception(request: Request, error: Exception) -> JSONResponse:
    """What the router itself refuses."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        refused = Refused(Code.METHOD_NOT_ALLOWED, f"{request.method} is not for this path")
        headers["Allow"] = ", ".join(_methods(request))
    else:
        refused = Refused(Code.NO_SUCH_ROUTE, "nothing is served at this path; see /openapi.json")
    return JSONResponse(refused.body(), refused.status, headers)


def _methods(request: Request) -> list[str]:
    """Of all routes of the path: the router itself names those of the first one only."""
    return [
        method
        for method in METHODS
        for scope in [{**request.scope, "method": method}]
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
    ]
