"""A WHIP client on aiortc: offer, trickle, ICE restart, end. It prints one JSON line.

    python -m tests.clients.whip_client --url http://…/whip

It offers `sendrecv`, so it hears an answer to what it says. aiortc cannot restart ICE: its agent
gets the new credentials by hand, and one check under them proves that they work.
"""

import argparse
import asyncio
import json
import re
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from tests.clients.aiortc_client import Ear, SpeechTrack
from tests.clients.trickle import take_apart
from tests.lab import speech

FRAGMENT = "application/trickle-ice-sdpfrag"
TALK_S = 3.0
_SETUP_S = 15.0
_CLOSED_S = 10.0


class Session:
    """A WHIP session; `statuses` has what each request was answered with."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self._http = http
        self._endpoint = url
        self.url = ""
        self.tag = ""
        self.statuses: dict[str, int] = {}
        self.headers: dict[str, str] = {}

    async def begin(self, offer: str) -> str:
        reply = await self._http.post(
            self._endpoint, content=offer, headers={"Content-Type": "application/sdp"}
        )
        self.statuses["post"] = reply.status_code
        self.headers = dict(reply.raise_for_status().headers)
        self.url = urljoin(self._endpoint, self.headers["location"])
        self.tag = self.headers["etag"]
        return reply.text

    async def patch(self, name: str, match: str, *lines: str) -> httpx.Response:
        headers = {"Content-Type": FRAGMENT, **({"If-Match": match} if match else {})}
        text = "".join(f"{line}\r\n" for line in lines)
        reply = await self._http.patch(self.url, content=text, headers=headers)
        self.statuses[name] = reply.status_code
        return reply

    async def end(self) -> None:
        self.statuses["delete"] = (await self._http.delete(self.url)).status_code


async def talk(arguments: argparse.Namespace) -> dict[str, Any]:
    """One session. Raises `TimeoutError`, `httpx.HTTPError`."""
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    ear, connected, closed = Ear(), asyncio.Event(), asyncio.Event()
    listening: list[asyncio.Task[None]] = []
    pc.on("track", lambda track: listening.append(asyncio.create_task(ear.listen(track))))
    states = {"connected": connected, "closed": closed}
    pc.on(
        "connectionstatechange",
        lambda: states.get(pc.connectionState, asyncio.Event()).set(),
    )
    pc.addTrack(SpeechTrack(speech.read(speech.SPOKEN)))
    try:
        async with httpx.AsyncClient(trust_env=False) as http:
            session = Session(http, arguments.url)
            await pc.setLocalDescription(await pc.createOffer())
            ours = take_apart(pc.localDescription.sdp)
            answer = await session.begin(ours.offer)
            credentials = (f"a=ice-ufrag:{ours.ufrag}", f"a=ice-pwd:{ours.pwd}")
            media = ("m=audio 9 UDP/TLS/RTP/SAVPF 0", "a=mid:0")
            trickled = (*credentials, *media, *(f"a={each}" for each in ours.candidates))
            await session.patch("trickle", session.tag, *trickled, "a=end-of-candidates")
            await session.patch("no_match", "", *trickled)
            async with asyncio.timeout(_SETUP_S):
                await pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))
                await connected.wait()
                await ear.first.wait()
            await asyncio.sleep(TALK_S)
            before = len(ear.samples())
            new = await _restart(pc, session)
            await session.patch("late", '"1"', *trickled)
            await asyncio.sleep(TALK_S)
            call_url = urljoin(arguments.url, f"/v1/realtime/calls/{session.url.split('/')[-1]}")
            call = (await http.get(call_url)).json()
            after = len(ear.samples()) - before
            await session.end()
            async with asyncio.timeout(_CLOSED_S):
                await closed.wait()
    finally:
        await pc.close()
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    speech.write_wav(arguments.record, ear.samples())
    return {
        "statuses": session.statuses,
        "headers": session.headers,
        "answer": answer,
        "fragment": new,
        "tag": session.tag,
        "call": call,
        "heard_s": [before / speech.RATE, after / speech.RATE],
    }


async def _restart(pc: RTCPeerConnection, session: Session) -> str:
    """The fragment that answers it. Raises what aioice does if the credentials are no good."""
    ufrag, pwd = secrets.token_hex(4), secrets.token_hex(16)
    reply = await session.patch("restart", "*", f"a=ice-ufrag:{ufrag}", f"a=ice-pwd:{pwd}")
    session.tag = reply.raise_for_status().headers["etag"]
    theirs = dict(re.findall(r"a=ice-(ufrag|pwd):(\S+)", reply.text))
    (transceiver,) = pc.getTransceivers()
    connection = transceiver.sender.transport.transport._connection
    connection._local_username, connection._local_password = ufrag, pwd
    connection.remote_username, connection.remote_password = theirs["ufrag"], theirs["pwd"]
    pair = connection._nominated[1]
    request = connection.build_request(pair, nominate=True)
    key = theirs["pwd"].encode()
    await pair.protocol.request(request, pair.remote_addr, integrity_key=key)
    return reply.text


def main() -> None:
    parser = argparse.ArgumentParser(description="WHIP test client")
    parser.add_argument("--url", required=True, help="the WHIP endpoint")
    parser.add_argument("--record", type=Path, required=True, help="WAV file of what is heard")
    print(json.dumps(asyncio.run(talk(parser.parse_args()))))


if __name__ == "__main__":
    main()
