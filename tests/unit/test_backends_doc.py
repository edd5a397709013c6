"""`docs/backends.md`: its example runs, its configuration loads, its table is the code's."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from relayctl.wire.settings import load
from tests.unit.transceiver.backends.around import Peer, Wire
from transceiver.audio.opus import Encoder
from transceiver.backends import base
from transceiver.backends.realtime import table
from transceiver.config import TransceiverConfig
from transceiver.lifecycle import End
from transceiver.rtp import Packet

DOCUMENT = (Path(__file__).parents[2] / "docs/backends.md").read_text()
NEEDED = """
listen = "127.0.0.1:5000"
inner = "plain"
cluster = 1
keys_file = "/keys"
mint = 1
"""


def block(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    return str(found)


def gong() -> dict[str, Any]:
    module: dict[str, Any] = {"__name__": "gong"}
    exec(compile(block("python"), "docs/backends.md", "exec"), module)
    return module


def test_the_example_strikes_when_one_stops_talking() -> None:
    module, peer, wire = gong(), Peer(), Wire()
    backend: base.Backend = module["Gong"](peer)
    backend.begin(wire, wire.now)
    encoder, rate = Encoder(wire.rate), wire.rate
    loud = (12_000 * np.sin(np.arange(rate) / 20)).astype(np.int16).tobytes()
    for n in range(340):
        speaks = n % 200 < 100 and n % 10  # two utterances of ten short words
        samples = loud[: rate // 50 * 2] if speaks else bytes(rate // 50 * 2)
        packet = Packet(111, n, n * 960, 1, encoder.encode(samples))
        backend.receive(packet, True, wire.now)
        assert wire.queued == 0 or n % 200 >= 120
        wire.run(wire.now + 0.02)
    backend.finish(End.SHUTDOWN, wire.now)
    assert wire.queued
    assert not peer.ended
    wire.run(backend.deadline)
    backend.timer(wire.now)
    assert wire.sent == len(module["GONG"]) // 2 * 2
    assert peer.ended == [End.SHUTDOWN]


def test_the_example_is_a_whole_backend() -> None:
    peer = Peer()
    backend = gong()["Gong"](peer)
    for name in vars(base.Backend):
        assert name.startswith("_") or hasattr(backend, name)
    backend.begin(Wire(), 0.0)
    backend.event({"type": "response.create", "event_id": "mine"}, 0.0)
    assert peer.said[0]["error"]["event_id"] == "mine"
    backend.loss(0.5, 0.0)
    backend.finish(End.SHUTDOWN, 0.0)
    assert peer.ended == [End.SHUTDOWN]


def test_the_configuration_loads() -> None:
    top, section = block("toml").split("[realtime]")
    config = load(TransceiverConfig, toml=f"{NEEDED}{top}[realtime]{section}")
    assert (config.backend, config.realtime.model) == ("realtime", "gpt-realtime")


def test_the_table_names_what_the_code_changes() -> None:
    [changed] = re.findall(r"### Which events are changed\n(.*?)\n### ", DOCUMENT, re.DOTALL)
    code = Path(table.__file__).read_text()
    named = set(
        re.findall(r"`((?:session|response|input|output|conversation)[a-z_]*\.[a-z_.]+)`", code)
    )
    assert named
    for event in named - {"output_audio_buffer."}:
        assert f"`{event}`" in changed, event
