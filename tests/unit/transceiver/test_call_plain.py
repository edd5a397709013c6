"""Whole calls on 127.0.0.1, `inner = "plain"`: aiortc's own peer connection is the client."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from relayctl.wire.packet_class import PacketClass, classify
from tests.unit.transceiver.live import Caller, Live, run, serving, until


def datagram_sockets() -> int:
    """UDP sockets of this process."""
    inodes = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    with open("/proc/self/net/udp") as table:
        return sum(line.split()[9] in inodes for line in table.readlines()[1:])


def test_echoes_audio_and_pings(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as live:
            caller = await Caller(live).call()
            await caller.connected()
            caller.channel.send("ping 7")
            caller.channel.send("hello")
            await until(lambda: caller.frames >= 20)
            assert caller.messages == ["pong 7", "hello"]
            shown = await live.show(caller.call_id)
            assert shown["state"] == "connected"
            assert shown["packets"]["down"] >= 20
            assert shown["packets"]["up"] == shown["packets"]["down"]
            assert shown["lost"] == 0
            assert all(value is not None for value in shown["timeline"].values())
            await caller.close()
            await until(lambda: len(live.transceiver.calls) == 0, 1)
            assert (await live.show(caller.call_id))["reason"] == "closed_by_peer"

    run(scenario)


def test_begins_a_realtime_session(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as live:
            caller = await Caller(live, "oai-events").call("realtime")
            await caller.connected()
            await until(lambda: caller.messages)
            update = {"type": "session.update", "session": {"instructions": "be brief"}}
            caller.channel.send(json.dumps(update))
            caller.channel.send(json.dumps({"type": "response.create", "event_id": "mine"}))
            await until(lambda: len(caller.messages) == 3)
            created, updated, error = caller.events()
            assert created["type"] == "session.created"
            assert updated["session"]["instructions"] == "be brief"
            assert error["error"]["event_id"] == "mine"
            await caller.close()

    run(scenario)


def test_speaks_the_beta_api(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, backend="parrot", parrot={"vad": "webrtc"}) as live:
            caller = await Caller(live, "oai-events").call("realtime-beta")
            await caller.connected()
            update = {"type": "session.update", "session": {"turn_detection": None}}
            caller.channel.send(json.dumps(update))
            await until(lambda: len(caller.messages) >= 2)
            created, updated = caller.events()[:2]
            assert created["session"]["input_audio_format"] == "pcm16"
            assert updated["session"]["turn_detection"] is None
            await caller.close()

    run(scenario)


def test_speaks_rtvi_and_hangs_up_when_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, backend="parrot", parrot={"vad": "webrtc"}) as live:
            caller = await Caller(live).call("rtvi")
            await caller.connected()
            caller.channel.send("ping: 1700000000000")
            for kind, data in (("client-ready", {}), ("send-text", {"content": "hello"})):
                message = {"label": "rtvi-ai", "type": kind, "id": kind, "data": data}
                caller.channel.send(json.dumps(message))
            await until(lambda: any(e["type"] == "bot-llm-stopped" for e in caller.events()), 10)
            kinds = [event["type"] for event in caller.events()]
            assert kinds[0] == "bot-ready"
            assert "error-response" not in kinds
            caller.channel.send(json.dumps({"label": "rtvi-ai", "type": "disconnect-bot"}))
            await until(lambda: caller.pc.connectionState == "closed", 15)
            assert (await live.show(caller.call_id))["reason"] == "closed_by_peer"
            await caller.close()

    run(scenario)


def test_hang_up_reaches_the_client(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as live:
            caller = await Caller(live).call()
            await caller.connected()
            assert (await live.http.delete(f"/v1/calls/{caller.call_id}")).status_code == 204
            await until(lambda: caller.pc.connectionState == "closed", 1)
            await caller.close()

    run(scenario)


def test_restart_keeps_the_media(tmp_path: Path) -> None:
    """aiortc cannot restart itself, so its agent gets the new credentials by hand."""

    async def scenario() -> None:
        async with serving(tmp_path) as live:
            caller = await Caller(live).call()
            await caller.connected()
            await until(lambda: caller.frames > 5)
            offer = caller.pc.localDescription.sdp
            sctp = caller.pc.sctp
            assert sctp is not None
            connection = sctp.transport.transport._connection
            offer = offer.replace(f"a=ice-ufrag:{connection.local_username}", "a=ice-ufrag:wxyz")
            response = await live.http.post(
                f"/v1/calls/{caller.call_id}/restart", json={"offer": offer}
            )
            assert response.status_code == 200
            answer = dict(
                line.split(":", 1)
                for line in response.json()["answer"].split("\r\n")
                if ":" in line
            )
            old = str(connection.remote_username)
            frames = caller.frames
            await asyncio.sleep(0.2)
            assert caller.frames > frames + 5  # the old path carries the media meanwhile
            connection._local_username = "wxyz"
            connection.remote_username = answer["a=ice-ufrag"]
            connection.remote_password = answer["a=ice-pwd"]
            await until(lambda: live.transceiver.mux.table.request(old.encode()) is None, 8)
            frames = caller.frames
            await until(lambda: caller.frames > frames + 5)
            assert (await live.show(caller.call_id))["state"] == "connected"
            await caller.close()

    run(scenario)


@pytest.mark.parametrize(
    ("direction", "n", "limit_s"),
    [
        pytest.param("down", 1, 0.6, id="our_first"),
        pytest.param("down", 2, 0.6, id="our_last"),
        # aiortc repeats its own flights after a second, and nobody else can
        pytest.param("up", 1, 1.6, id="client_first"),
        pytest.param("up", 2, 1.6, id="client_last"),
    ],
)
def test_a_lost_handshake_datagram(tmp_path: Path, direction: str, n: int, limit_s: float) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as live:
            _lose_dtls(live, direction, n)
            caller = await Caller(live).call()
            assert await caller.connected() < limit_s
            await caller.close()

    run(scenario)


def _lose_dtls(live: Live, direction: str, n: int) -> None:
    mux = live.transceiver.mux
    name = "receive" if direction == "up" else "send"
    whole = getattr(mux, name)
    at = 0 if direction == "up" else 2
    seen = 0

    def holey(*arguments: Any) -> None:
        nonlocal seen
        if classify(arguments[at]) is PacketClass.DTLS:
            seen += 1
            if seen == n:
                return
        whole(*arguments)

    setattr(mux, name, holey)


def test_thirty_calls_use_one_media_socket_and_leave_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, setup_s=1.0) as live:
            await live.http.get("/healthz")
            sockets, tasks = datagram_sockets(), len(asyncio.all_tasks())
            fds = len(os.listdir("/proc/self/fd"))
            callers = [await Caller(live).call() for _ in range(3)]
            for caller in callers:
                await caller.connected()
            offer = callers[0].pc.localDescription.sdp
            for _ in range(27):
                await live.create(offer)
            assert len(live.transceiver.calls) == 30
            assert (await live.http.post("/v1/calls", json={})).status_code == 400
            assert datagram_sockets() - len(callers) == sockets == 1
            for caller in callers:
                await caller.close()
            await until(lambda: len(live.transceiver.calls) == 0, 3)
            await asyncio.sleep(0.1)
            assert len(live.transceiver.mux.table) == 0
            assert datagram_sockets() == sockets
            assert len(os.listdir("/proc/self/fd")) == fds
            assert len(asyncio.all_tasks()) == tasks

    run(scenario)
