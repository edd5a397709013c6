"""The probe client: a lean call for each score, played packet by packet, and all that came back.

    python -m tests.audio.probe --url http://…/v1/realtime/calls --host 10.1.0.2 A.json B.json

Each score is a file of `score.to_json`. All calls are set up first, then begin together; the takes
go to standard output as one JSON list. Moments are of the wall clock; those of arrivals are the
kernel's, so that a busy client delays none.
"""

import argparse
import asyncio
import json
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from aiortc import RTCCertificate

from relayctl.wire.address import Address
from tests.audio.score import Note, from_json, in_order
from tests.clients.lean_call import LeanCall, Options
from transceiver import rtp

_SO_TIMESTAMPNS = 35  # asm-generic/socket.h; the ancillary message has the same number
_TIMESPEC = struct.Struct("qq")
_KEEP_ALIVE_S = 0.02
_LEAD_S = 0.1  # between the last set-up and the first note
_QUIET_S = 0.4  # without a packet: nothing is under way any more
_DRAIN_S = 3.0  # for who never stops


class ProbeCall(LeanCall):
    def __init__(self, options: Options, http: httpx.AsyncClient, score: list[Note]) -> None:
        super().__init__(options, http)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._score = score
        self._arrived = 0.0
        self.sent: list[float] = []
        self.came: list[tuple[float, bytes]] = []

    async def play(self, began: float) -> None:
        """Send each note at its moment; `began` is of the monotonic clock."""
        datagrams = {n.sequence: self.protect(self._packet(n)) for n in in_order(self._score)}
        for note in self._score:
            await asyncio.sleep(began + note.at - time.monotonic())
            self.sent.append(time.time())
            self.send(datagrams[note.sequence])

    def _packet(self, note: Note) -> bytes:
        kind, ssrc = self.speech.payload_type, self.speech.ssrc
        return rtp.build(
            rtp.Packet(kind, note.sequence, note.timestamp, ssrc, note.payload, note.marker)
        )

    def read(self, sock: socket.socket) -> tuple[bytes, Address]:
        data, ancillary, _, source = sock.recvmsg(2048, socket.CMSG_SPACE(_TIMESPEC.size))
        self._arrived = time.time()
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = _TIMESPEC.unpack(value)
                self._arrived = seconds + nanoseconds * 1e-9
        return data, source

    def hear(self, packet: bytes, now: float) -> None:
        self.came.append((self._arrived, packet))

    def take(self) -> dict[str, Any]:
        packets = [(at, rtp.parse(data)) for at, data in self.came]
        return {
            "id": self.report()["id"],
            "sent": self.sent,
            "came": [(at, p.sequence, p.timestamp, p.payload.hex()) for at, p in packets],
        }


async def run(url: str, host: str, scores: list[list[Note]]) -> list[dict[str, Any]]:
    """Raises what the set-up of a call raises."""
    options = Options(url, host, (b"",), RTCCertificate.generateCertificate())
    async with httpx.AsyncClient(trust_env=False) as http:
        calls = [ProbeCall(options, http, score) for score in scores]
        alive = asyncio.create_task(_keep_alive(calls))
        try:
            await asyncio.gather(*(call.start() for call in calls))
            began = time.monotonic() + _LEAD_S
            await asyncio.gather(*(call.play(began) for call in calls))
            await _drain(calls)
            return [call.take() for call in calls]
        finally:
            alive.cancel()
            await asyncio.gather(*(call.close() for call in calls))


async def _drain(calls: list[ProbeCall]) -> None:
    deadline = time.monotonic() + _DRAIN_S
    came = -1
    while came != (now := sum(len(call.came) for call in calls)) and time.monotonic() < deadline:
        came = now
        await asyncio.sleep(_QUIET_S)


async def _keep_alive(calls: list[ProbeCall]) -> None:
    while True:
        for call in calls:
            call.keep_alive(time.monotonic())
        await asyncio.sleep(_KEEP_ALIVE_S)


def main() -> None:
    parser = argparse.ArgumentParser(description="Probe client: plays packets, keeps what returns")
    parser.add_argument("--url", required=True, help="where to POST the SDP offer")
    parser.add_argument("--host", required=True, help="our address")
    parser.add_argument("scores", nargs="+", type=Path)
    given = parser.parse_args()
    takes = asyncio.run(
        run(given.url, given.host, [from_json(path.read_text()) for path in given.scores])
    )
    json.dump(takes, sys.stdout)


if __name__ == "__main__":
    main()
