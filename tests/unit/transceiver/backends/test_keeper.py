import math
from typing import Any

from tests.unit.transceiver.backends.around import Peer
from transceiver.backends.keeper import FINISH_S, Keeper, Terms
from transceiver.lifecycle import End
from transceiver.session import commands
from transceiver.session.commands import Command


class Rig:
    def __init__(self, session: dict[str, Any] | None = None, **terms: Any) -> None:
        self.peer = Peer(session)
        self.done: list[object] = []  # commands, and types of what was said, in order
        self.peer.say = lambda event: self.done.append(event["type"])  # type: ignore[method-assign]
        self.keeper = Keeper(
            self.peer,
            Terms(unix_time=lambda: 1e9, **terms),
            self._obey,
            model="m",
            responds=True,
        )

    def _obey(self, command: Command, now: float) -> None:
        self.done.append(type(command))
        if isinstance(command, commands.Clear):
            self.keeper.carry_out(self.keeper.session.cut(None), now)


def test_events_are_said_and_commands_obeyed_in_their_order() -> None:
    rig = Rig({"instructions": "be brief"})
    rig.keeper.begin(5.0)
    assert rig.done == ["session.created", commands.Detect]
    rig.done.clear()
    rig.keeper.event({"type": "response.create"}, 6.0)
    rig.keeper.event({"type": "response.cancel"}, 6.0)
    assert rig.done == [
        "response.created",
        "rate_limits.updated",
        commands.Respond,
        commands.Abandon,
        commands.Clear,
        "response.done",
    ]


def test_the_session_warns_and_ends() -> None:
    rig = Rig(length_s=100.0, warning_s=10.0)
    rig.keeper.begin(5.0)
    rig.done.clear()
    assert rig.keeper.deadline == 95.0
    assert not rig.keeper.timer(94.9)
    assert rig.done == []
    assert not rig.keeper.timer(95.0)
    assert rig.done == ["error"]
    assert rig.keeper.timer(rig.keeper.deadline)
    assert rig.done == ["error", "error"]
    assert not rig.peer.ended  # that is the backend's to do


def test_idle_time_counts_from_the_end_of_a_reply() -> None:
    detection = {"type": "server_vad", "idle_timeout_ms": 2000}
    rig = Rig({"audio": {"input": {"turn_detection": detection}}})
    rig.keeper.begin(5.0)
    rig.keeper.event({"type": "response.create"}, 6.0)
    rig.keeper.event({"type": "response.cancel"}, 6.0)
    assert rig.keeper.deadline <= 6.0
    rig.keeper.timer(6.0)
    assert rig.keeper.deadline == 8.0
    rig.keeper.timer(8.0, 1234)
    assert "input_audio_buffer.timeout_triggered" in rig.done


def test_the_first_reason_to_end_holds_and_ends_it_at_last() -> None:
    rig = Rig()
    rig.keeper.begin(5.0)
    rig.keeper.end()
    assert not rig.peer.ended
    rig.keeper.finish(End.SHUTDOWN, 10.0)
    rig.keeper.finish(End.HANGUP, 12.0)
    assert rig.keeper.finishing
    assert rig.keeper.deadline == 10.0 + FINISH_S
    rig.keeper.timer(19.9)
    assert not rig.peer.ended
    rig.keeper.timer(20.0)
    assert rig.peer.ended == [End.SHUTDOWN]


def test_it_can_end_before_it_begins() -> None:
    rig = Rig()
    assert not rig.keeper.begun
    assert not rig.keeper.timer(1.0)
    rig.keeper.finish(End.HANGUP, 1.0)
    rig.keeper.end()
    assert rig.peer.ended == [End.HANGUP]
    assert rig.keeper.deadline == math.inf
    assert not rig.keeper.timer(100.0)
    assert rig.peer.ended == [End.HANGUP]
