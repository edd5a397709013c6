"""What probes and Prometheus ask: `/healthz`, `/readyz`, `/metrics`."""

from fastapi import APIRouter
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, Response

from signaling.calls import Calls
from signaling.metrics import Metrics

FACE = "ops"


def routes(calls: Calls, metrics: Metrics) -> APIRouter:
    """`/healthz`: the process lives. `/readyz`: a call would find a place. `/metrics`: figures."""
    router = APIRouter(tags=[FACE])

    @router.get("/healthz")
    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @router.get("/readyz")
    async def readyz() -> JSONResponse:
        calls.ready()
        return JSONResponse({"status": "ready"})

    @router.get("/metrics", response_class=Response)
    async def exposition() -> Response:
        return Response(
            generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    return router
