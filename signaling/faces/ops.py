"""What probes and Prometheus ask: `/healthz`, `/readyz`, `/metrics`."""

from fastapi import APIRouter
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, Response

from signaling.calls import Calls
from signaling.faces import described
from signaling.faces.described import JSON
from signaling.metrics import Metrics
from signaling.refusal import Code

FACE = "ops"

_HEALTHY = described.answer(200, "It does", {JSON: described.OBJECT})
_READY = {
    **described.answer(200, "It would", {JSON: described.OBJECT}),
    **described.errors(Code.NO_TRANSCEIVER, Code.NO_INGRESS, Code.ALL_FULL),
}
_METRICS = described.answer(
    200, "Exposition format", {CONTENT_TYPE_LATEST.partition(";")[0]: {"type": "string"}}
)


def routes(calls: Calls, metrics: Metrics) -> APIRouter:
    """`/healthz`: the process lives. `/readyz`: a call would find a place. `/metrics`: figures."""
    router = APIRouter(tags=[FACE])

    @router.get("/healthz", summary="The process lives", responses=_HEALTHY)
    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @router.get("/readyz", summary="A call would find a place", responses=_READY)
    async def readyz() -> JSONResponse:
        calls.ready()
        return JSONResponse({"status": "ready"})

    @router.get(
        "/metrics", summary="Figures for Prometheus", response_class=Response, responses=_METRICS
    )
    async def exposition() -> Response:
        return Response(
            generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    return router
