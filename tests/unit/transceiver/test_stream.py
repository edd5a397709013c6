"""What `test_call.py` does not see: the end from inside, and in every state."""

import pytest

from tests.unit.transceiver.harness import Client, World
from tests.unit.transceiver.recorder import Recorder
from transceiver.lifecycle import End
from transceiver.sdp import parse_offer
from transceiver.sdp_answer import Local
from transceiver.stream import Stream


class Rig:
    def __init__(self) -> None:
        self.world = World()
        self.client = Client(("198.51.100.7", 40000))
        self.steps: list[str] = []
        self.ends: list[End] = []
        around = self.world.calls._around
        local = Local("u" * 24, "p" * 24, around.identity.fingerprint, 5, "us", (), 1)
        line = Recorder().line(on_end=self._end)
        self.stream = Stream(
            around,
            parse_offer(self.client.offer()),
            local,
            line,
            lambda label: pytest.fail("no channel here"),
            send=lambda datagram: self.client.receive(datagram, 0.0),
            on_step=self.steps.append,
            on_end=self._end,
        )
        self.client.take_answer(f"a=fingerprint:{around.identity.fingerprint}")

    def _end(self, reason: End) -> None:
        self.ends.append(reason)
        self.stream.close()

    def connect(self) -> None:
        self.stream.begin(0.0)
        self.client.hello(0.0)
        self.deliver()

    def deliver(self) -> None:
        while self.client.outbox:
            self.stream.receive_dtls(self.client.outbox.pop(0), 0.0)


def test_steps_and_the_end_from_inside() -> None:
    rig = Rig()
    rig.connect()
    assert rig.steps == ["dtls"]
    assert rig.client.dtls is not None
    rig.client.dtls.close()
    rig.deliver()
    assert rig.ends == [End.CLOSED_BY_PEER]
    assert rig.stream.open_rtp(bytes(40), 0.0) is None


@pytest.mark.parametrize("state", ["new", "begun", "connected"])
def test_closes_in_any_state_and_twice(state: str) -> None:
    rig = Rig()
    if state == "begun":
        rig.stream.begin(0.0)
    elif state == "connected":
        rig.connect()
    rig.stream.close()
    rig.stream.close()
    rig.stream.timer(100.0)
    assert rig.client.closed == (state == "connected")


def test_nothing_is_media_after_the_end() -> None:
    rig = Rig()
    rig.connect()
    rig.client.speak()
    first = rig.client.outbox.pop()
    rig.client.speak()
    assert rig.stream.open_rtp(first, 0.0) is not None
    rig.stream.close()
    assert rig.stream.open_rtp(rig.client.outbox.pop(), 0.0) is None


def test_nothing_is_media_before_dtls() -> None:
    rig = Rig()
    rig.stream.begin(0.0)
    assert rig.stream.media is None
    assert rig.stream.open_rtp(bytes(40), 0.0) is None
    rig.stream.pause()
    rig.stream.resume()
