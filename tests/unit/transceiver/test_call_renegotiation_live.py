"""aiortc's own renegotiation against a running transceiver.

Video is not among it: aiortc refuses an answer that rejects a section. Browsers do that elsewhere.
"""

from pathlib import Path
from typing import Any

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack

from tests.unit.transceiver.live import Caller, Live, run, serving, until


class Later(Caller):
    """Begins with audio alone."""

    def __init__(self, live: Live) -> None:
        super().__init__(live)
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.pc.addTrack(AudioStreamTrack())
        self.pc.on("track", self._read)

    async def negotiate(self) -> str:
        await self.pc.setLocalDescription(await self.pc.createOffer())
        body = {"offer": self.pc.localDescription.sdp}
        response = await self.live.http.post(f"/v1/calls/{self.call_id}/restart", json=body)
        assert response.status_code == 200, response.text
        answer: str = response.json()["answer"]
        await self.pc.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        return answer

    async def add_channel(self) -> None:
        self.channel = self.pc.createDataChannel("chat")
        self.channel.on("message", self.messages.append)
        await self.negotiate()
        await until(lambda: self.channel.readyState == "open")

    async def turn(self, direction: str) -> None:
        self.pc.getTransceivers()[0].direction = direction
        await self.negotiate()


def test_a_data_channel_comes_later_and_the_audio_is_held_and_resumed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as live:
            caller = Later(live)
            await caller.call()
            await until(lambda: caller.frames > 5)
            await caller.add_channel()
            caller.channel.send("ping: 1")
            await until(lambda: caller.messages)
            ufrags = {_ufrag(caller)}
            await caller.turn("inactive")
            sent = await _packets_down(live, caller)
            caller.messages.clear()
            caller.channel.send("ping: 2")
            await until(lambda: caller.messages)
            assert await _packets_down(live, caller) == sent
            await caller.turn("sendrecv")
            frames = caller.frames
            await until(lambda: caller.frames > frames + 5)
            ufrags.add(_ufrag(caller))
            assert len(ufrags) == 1
            assert (await live.show(caller.call_id))["moves"] == 0
            assert caller.pc.connectionState == "connected"
            await caller.close()

    run(scenario)


def _ufrag(caller: Caller) -> str:
    text = caller.pc.remoteDescription.sdp
    return next(line for line in text.splitlines() if line.startswith("a=ice-ufrag:"))


async def _packets_down(live: Live, caller: Caller) -> int:
    shown: dict[str, Any] = await live.show(caller.call_id)
    return int(shown["packets"]["down"])
