"""Stock aiortc's echo to compare with, behind the control API of the bench.

    python -m tests.bench_media.stock_echo --listen 10.99.0.1:5000 [--codec stock|ours]

What its `server` example does to a track that it sends back: `addTrack(relay.subscribe(track))` on
an `RTCPeerConnection`, with all that aiortc does by itself: jitter buffer, decoder thread, encoder.
`--codec ours` changes its encoder alone: mono, 32 kb/s, complexity 5, FEC, as the transceiver's.
"""

import argparse
import fractions
import itertools

import aiortc.codecs
import uvicorn
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.codecs import opus
from aiortc.contrib.media import MediaRelay
from av import AudioResampler, CodecContext
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from transceiver.audio.opus import BITRATE, COMPLEXITY, EXPECTED_LOSS

STOCK = "stereo, 96 kb/s, complexity 10, no FEC"
_NO_STUN = RTCConfiguration(iceServers=[])  # the default is a public server, and 5 s without it


class OurSettings(opus.OpusEncoder):
    """aiortc's encoder with the transceiver's settings."""

    def __init__(self) -> None:
        self.codec = CodecContext.create("libopus", "w")
        self.codec.bit_rate = BITRATE
        self.codec.format = "s16"
        self.codec.layout = "mono"
        self.codec.options = {
            "application": "voip",
            "compression_level": str(COMPLEXITY),
            "fec": "1",
            "packet_loss": str(EXPECTED_LOSS),
        }
        self.codec.sample_rate = opus.SAMPLE_RATE
        self.codec.time_base = fractions.Fraction(1, opus.SAMPLE_RATE)
        self.resampler = AudioResampler(
            format="s16", layout="mono", rate=opus.SAMPLE_RATE, frame_size=opus.SAMPLES_PER_FRAME
        )
        self.first_packet_pts = None


def create_app() -> Starlette:
    relay = MediaRelay()
    calls: dict[str, RTCPeerConnection] = {}
    numbers = itertools.count(1)

    async def create(request: Request) -> Response:
        offer = (await request.json())["offer"]
        call = RTCPeerConnection(_NO_STUN)
        name = str(next(numbers))
        calls[name] = call

        @call.on("connectionstatechange")
        async def on_state() -> None:
            if call.connectionState == "failed":
                await call.close()
                calls.pop(name, None)

        @call.on("track")
        def on_track(track: MediaStreamTrack) -> None:
            call.addTrack(relay.subscribe(track))

        await call.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await call.setLocalDescription(await call.createAnswer())
        return JSONResponse({"id": name, "answer": call.localDescription.sdp}, 201)

    async def hang_up(request: Request) -> Response:
        call = calls.pop(str(request.path_params["id"]), None)
        if call is None:
            return Response(status_code=404)
        await call.close()
        return Response(status_code=204)

    async def healthz(request: Request) -> Response:
        return Response(status_code=200)

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/v1/calls", create, methods=["POST"]),
            Route("/v1/calls/{id}", hang_up, methods=["DELETE"]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="stock aiortc's echo")
    parser.add_argument("--listen", required=True, metavar="IP:PORT")
    parser.add_argument("--codec", choices=("stock", "ours"), default="stock")
    arguments = parser.parse_args()
    if arguments.codec == "ours":
        aiortc.codecs.OpusEncoder = OurSettings  # type: ignore[attr-defined]
    host, _, port = arguments.listen.rpartition(":")
    uvicorn.run(create_app(), host=host, port=int(port), loop="asyncio", log_level="warning")


if __name__ == "__main__":
    main()
