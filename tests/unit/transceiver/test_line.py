import math

import pytest

from tests.unit.transceiver.recorder import Recorder
from transceiver.events import Event
from transceiver.lifecycle import End
from transceiver.line import FINISH_S, MAX_EARLY, MAX_KEPT, Line


class Rig:
    def __init__(self, faulty: str = "") -> None:
        self.backend = Recorder(faulty)
        self.wakes = 0
        self.ends: list[End] = []
        self.heard: list[Event] = []
        self.line: Line = self.backend.line(self._wake, self._end)

    def _wake(self) -> None:
        self.wakes += 1

    def _end(self, reason: End) -> None:
        self.ends.append(reason)
        self.line.close()

    @property
    def numbers(self) -> list[int]:
        return [event["n"] for event in self.heard]


def test_is_the_client_of_the_backend_from_the_start() -> None:
    rig = Rig()
    assert rig.backend.client is rig.line
    assert rig.line.session == {"a": 1}
    assert rig.line.new_id("resp") == "resp_0"
    assert rig.backend.told == ["make"]


def test_events_are_kept_until_somebody_listens_and_come_in_order() -> None:
    rig = Rig()
    rig.line.say({"type": "x", "n": 0})
    rig.line.say({"type": "x", "n": 1})
    rig.line.listen(rig.heard.append)
    rig.line.say({"type": "x", "n": 2})
    assert rig.numbers == [0, 1, 2]
    assert len({event["event_id"] for event in rig.heard}) == 3
    assert rig.backend.noted == rig.heard


def test_an_event_that_has_an_id_keeps_it() -> None:
    rig = Rig()
    rig.line.listen(rig.heard.append)
    said: Event = {"type": "x", "event_id": "theirs"}
    rig.line.say(said)
    assert rig.heard == [said]


def test_of_many_the_first_and_the_newest_are_kept() -> None:
    rig = Rig()
    for n in range(200):
        rig.line.say({"type": "x", "n": n})
    rig.line.listen(rig.heard.append)
    assert rig.numbers == [0, *range(200 - MAX_KEPT + 1, 200)]
    assert len(rig.numbers) == MAX_KEPT == 50


def test_every_channel_hears_and_only_the_first_what_was_kept() -> None:
    rig = Rig()
    other: list[Event] = []
    rig.line.say({"type": "x", "n": 0})
    rig.line.listen(rig.heard.append)
    ear = other.append
    rig.line.listen(ear)
    rig.line.say({"type": "x", "n": 1})
    rig.line.deafen(ear)
    rig.line.deafen(ear)
    rig.line.say({"type": "x", "n": 2})
    assert rig.numbers == [0, 1, 2]
    assert [event["n"] for event in other] == [1]


def test_what_is_said_while_what_was_kept_is_told_comes_after_it() -> None:
    rig = Rig()
    rig.line.say({"type": "x", "n": 0})
    rig.line.say({"type": "x", "n": 1})

    def ear(event: Event) -> None:
        rig.heard.append(event)
        if event["n"] == 0:
            rig.line.say({"type": "x", "n": 2})

    rig.line.listen(ear)
    assert rig.numbers == [0, 1, 2]


def test_the_session_of_the_backend_has_a_name() -> None:
    rig = Rig()
    assert rig.line.session_id is None
    rig.line.say({"type": "session.created", "session": {"id": "sess_1"}})
    rig.line.say({"type": "x", "session": {"id": 5}})
    rig.line.say({"type": "x", "session": "sess_2"})
    assert rig.line.session_id == "sess_1"


def test_the_backend_hears_and_the_call_looks_when_it_is_due() -> None:
    rig = Rig()
    rig.line.hear({"type": "x"}, 1.0)
    assert rig.backend.events == [{"type": "x"}]
    assert rig.wakes == 1


def test_a_fault_of_the_backend_ends_the_call(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig("event")
    rig.line.hear({"type": "secret"}, 1.0)
    rig.line.hear({"type": "x"}, 1.0)
    assert rig.ends == [End.INTERNAL_ERROR]
    assert rig.backend.told == ["make", "event", "close"]
    assert "fault in a backend" in caplog.text
    assert "secret" not in caplog.text


def test_closes_the_backend_once_though_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig("close")
    rig.line.close()
    rig.line.close()
    assert rig.backend.told == ["make", "close"]
    assert "fault in a backend" in caplog.text


def test_last_words_have_their_time() -> None:
    rig = Rig()
    rig.line.finish(End.HANGUP, 50.0)
    rig.line.finish(End.SHUTDOWN, 51.0)
    assert rig.backend.finishing == [End.HANGUP]
    assert rig.line.deadline == 50.0 + FINISH_S
    rig.line.timer(50.0 + FINISH_S - 0.1)
    assert rig.ends == []
    rig.line.timer(50.0 + FINISH_S)
    assert rig.ends == [End.HANGUP]


def test_a_backend_that_fails_at_its_last_words_ends_the_call_too() -> None:
    rig = Rig("finish")
    rig.line.finish(End.HANGUP, 50.0)
    assert rig.ends == [End.INTERNAL_ERROR]


def test_a_cut_comes_soon_and_not_within_a_call_of_the_backend() -> None:
    rig = Rig()
    rig.line.cut(End.SLOW_CLIENT)
    assert (rig.ends, rig.wakes) == ([], 1)
    assert rig.line.deadline <= 0
    rig.line.timer(0.0)
    assert rig.ends == [End.SLOW_CLIENT]


def test_a_closed_line_is_silent() -> None:
    rig = Rig()
    rig.line.close()
    rig.line.say({"type": "x", "n": 0})
    rig.line.listen(rig.heard.append)
    rig.line.finish(End.HANGUP, 1.0)
    rig.line.hear({"type": "x"}, 1.0)
    rig.line.timer(1e9)
    assert rig.heard == []
    assert rig.ends == []
    assert rig.backend.told == ["make", "close"]


class Watcher:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ends = 0

    def told(self, event: Event) -> None:
        self.events.append(event)

    def over(self) -> None:
        self.ends += 1


def test_a_watcher_hears_what_the_client_hears_and_takes_nothing_from_it() -> None:
    rig, watcher = Rig(), Watcher()
    rig.line.say({"type": "x", "n": 0})
    rig.line.watch(watcher)
    rig.line.say({"type": "x", "n": 1})
    rig.line.listen(rig.heard.append)
    rig.line.say({"type": "x", "n": 2})
    rig.line.unwatch(watcher)
    rig.line.unwatch(watcher)
    rig.line.say({"type": "x", "n": 3})
    assert rig.numbers == [0, 1, 2, 3]
    assert watcher.events == rig.heard[1:3]


def test_a_watcher_is_told_the_session_as_it_is_first() -> None:
    rig, early, late = Rig(), Watcher(), Watcher()
    rig.line.watch(early)
    rig.line.say({"type": "session.created", "session": {"id": "sess_1", "voice": "a"}})
    rig.line.say({"type": "session.updated", "session": {"id": "sess_1", "voice": "b"}})
    rig.line.watch(late)
    assert [event["type"] for event in early.events] == ["session.created", "session.updated"]
    created = late.events.pop()
    assert created["type"] == "session.created"
    assert created["session"] == {"id": "sess_1", "voice": "b"}
    assert created["event_id"] not in [event["event_id"] for event in early.events]
    assert late.events == []


def test_what_a_watcher_says_waits_for_the_backend_in_order() -> None:
    rig = Rig()
    for n in range(2):
        rig.line.prompt({"type": "x", "n": n}, 1.0)
    assert rig.backend.events == []
    rig.line.connected(5.0)
    rig.line.prompt({"type": "x", "n": 2}, 5.0)
    assert (rig.backend.events, rig.line.deadline) == ([], 5.0)
    rig.line.timer(5.0)
    rig.line.prompt({"type": "x", "n": 3}, 6.0)
    assert [event["n"] for event in rig.backend.events] == [0, 1, 2, 3]
    assert rig.line.deadline == math.inf


def test_without_early_events_a_connected_line_has_nothing_to_do() -> None:
    rig = Rig()
    rig.line.connected(5.0)
    assert (rig.line.deadline, rig.wakes) == (math.inf, 0)
    rig.line.prompt({"type": "x"}, 6.0)
    assert rig.backend.events == [{"type": "x"}]


def test_no_more_than_some_early_events_wait() -> None:
    rig, watcher = Rig(), Watcher()
    rig.line.watch(watcher)
    for n in range(MAX_EARLY + 1):
        rig.line.prompt({"type": "x", "event_id": f"e{n}"}, 1.0)
    (refused,) = watcher.events
    assert refused["error"]["code"] == "too_many_early_events"
    assert refused["error"]["event_id"] == f"e{MAX_EARLY}"
    rig.line.connected(2.0)
    rig.line.timer(2.0)
    assert len(rig.backend.events) == MAX_EARLY


def test_watchers_are_told_the_end_once() -> None:
    rig, watcher, late = Rig(), Watcher(), Watcher()
    rig.line.watch(watcher)
    rig.line.prompt({"type": "x"}, 1.0)
    assert rig.line.watchers == 1
    rig.line.close()
    rig.line.close()
    rig.line.say({"type": "x"})
    rig.line.watch(late)
    rig.line.connected(2.0)
    rig.line.timer(3.0)
    rig.line.prompt({"type": "x"}, 3.0)
    assert (watcher.ends, watcher.events, late.ends) == (1, [], 1)
    assert rig.backend.events == []


def test_what_is_restored_is_kept_too() -> None:
    rig = Rig()
    restored = [{"id": str(n)} for n in range(100)]
    line = Line(
        rig.backend.make,
        {},
        lambda kind: kind,
        lambda event: None,
        lambda: None,
        rig.ends.append,
        restored,
    )
    for n in range(1000):
        line.say({"type": "x", "n": n})
    line.listen(rig.heard.append)
    assert rig.numbers == [*range(201), *range(1000 - MAX_KEPT + 1, 1000)]
