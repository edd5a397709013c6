"""A call and its backend: when it is made, told and closed, and what its faults cost."""

import pytest

from relayctl.wire.address import Address
from tests.unit.transceiver.harness import VIP, Client, World
from tests.unit.transceiver.recorder import Recorder
from transceiver.dialects.choice import DialectName
from transceiver.lifecycle import End, State
from transceiver.line import FINISH_S


class Guarded(World):
    def up(self, address: Address, payload: bytes, vip: Address = VIP) -> None:
        """A fault is the mux's to contain, as when it reads its socket."""
        try:
            super().up(address, payload, vip)
        except RuntimeError:
            self.mux._fault()


class Rig:
    """A world whose calls have recorders. The first call's is `backend`, and may be faulty."""

    def __init__(self, faulty: str = "") -> None:
        self.backend = Recorder(faulty)
        self.others: list[Recorder] = []
        self.world = Guarded(make_backend=self._make)

    def _make(self, line: object) -> Recorder:
        backend = self.backend
        if backend.client is not None:
            backend = Recorder()
            self.others.append(backend)
        return backend.make(line)  # type: ignore[arg-type]

    def client(self) -> Client:
        return self.world.client()

    def speak(self, client: Client) -> None:
        client.speak()
        self.world.pump()


def test_is_made_with_the_first_authentic_check_and_begins_with_the_audio() -> None:
    rig = Rig()
    client = rig.client()
    assert rig.backend.told == []
    client.answers_checks = False
    rig.world.up(client.address, client.check_bytes(pwd="nonsense" * 3))
    assert rig.backend.told == []
    client.check()
    rig.world.pump()
    assert rig.backend.told == ["make"]
    client.answers_checks = True
    rig.world.run(1)
    rig.world.connect(client)
    assert rig.backend.told == ["make", "begin"]
    rig.speak(client)
    assert rig.backend.told == ["make", "begin", "receive"]


def test_is_asked_for_the_session_that_the_call_was_made_with() -> None:
    rig = Rig()
    client = rig.world.place(Client(("198.51.100.7", 40000)))
    session = {"instructions": "be brief"}
    client.call_id, answer = rig.world.calls.create(
        client.offer(), (VIP,), DialectName.PLAIN, session=session
    )
    client.take_answer(answer)
    rig.world.connect(client)
    assert rig.backend.client is not None
    assert rig.backend.client.session == session
    rig.backend.client.say({"type": "session.created", "session": {"id": "sess_7"}})
    shown = rig.world.calls.describe(client.call_id)
    assert (shown["backend"], shown["session"]) == ("echo", "sess_7")
    rig.world.calls.hang_up(client.call_id)
    assert rig.world.calls.describe(client.call_id)["session"] == "sess_7"


@pytest.mark.parametrize("state", ["new", "connecting", "connected"])
def test_is_closed_once_in_any_state(state: str) -> None:
    rig = Rig()
    client = rig.client()
    client.answers_checks = state != "connecting"
    if state != "new":
        rig.world.connect(client)
    rig.world.calls.hang_up(client.call_id)
    rig.world.pump()
    assert rig.backend.told.count("close") == (state != "new")
    assert rig.backend.told[-1:] == ([] if state == "new" else ["close"])


def test_the_backend_may_end_the_call_even_while_it_is_made() -> None:
    class Unwilling(Recorder):
        def make(self, client):  # type: ignore[no-untyped-def]
            client.end(End.BACKEND_ENDED)
            return super().make(client)

    rig = Rig()
    rig.backend = Unwilling()
    client = rig.client()
    client.check()
    rig.world.pump()
    assert rig.world.calls.describe(client.call_id)["reason"] == "backend_ended"
    assert rig.backend.told == ["make", "close"]
    assert len(rig.world.calls) == 0


@pytest.mark.parametrize(
    "method", ["make", "begin", "receive", "timer", "pause", "resume", "close", "statistics"]
)
def test_a_fault_ends_that_call_only(method: str) -> None:
    rig = Rig(method)
    client = rig.world.connect(rig.client())
    other = rig.world.connected(41000, ufrag="efgh", ssrc=5)
    client.outbox.clear() if not client.connected else rig.speak(client)
    rig.backend.deadline = rig.world.now
    rig.world.run(0.2)
    if method in ("pause", "resume"):
        client.answers_checks = False
        for _ in range(30):
            rig.world.run(0.5)
            rig.speak(other)
        client.answers_checks = True
        if rig.world.calls.describe(client.call_id)["state"] != "ended":
            client.check()
            rig.world.pump()
    if method in ("close", "statistics"):
        rig.world.calls.describe(client.call_id)
        rig.world.calls.hang_up(client.call_id)
    shown = rig.world.calls.describe(client.call_id)
    gentle = method in ("close", "statistics")
    assert (shown["state"], shown["reason"]) == ("ended", "hangup" if gentle else "internal_error")
    assert rig.backend.told.count("close") == (method != "make")
    before = rig.others[0].told.count("receive")
    rig.speak(other)
    assert rig.others[0].told.count("receive") == before + 1
    assert rig.world.call(other).state is State.CONNECTED


def test_a_deadline_that_moves_by_itself_is_looked_at_when_told() -> None:
    rig = Rig()
    rig.world.connect(rig.client())
    rig.world.run(0.2)
    assert rig.backend.client is not None
    rig.backend.deadline = rig.world.now
    rig.backend.client.wake()
    rig.world.run(0.1)
    assert rig.backend.told.count("timer") == 1


def test_last_words_are_waited_for_but_not_for_ever() -> None:
    rig = Rig()
    client = rig.world.connect(rig.client())
    rig.world.calls.finish(client.call_id)
    assert rig.backend.finishing == [End.HANGUP]
    rig.world.run(FINISH_S - 1)
    assert rig.world.call(client).state is State.CONNECTED
    rig.world.run(1.2)
    assert rig.world.calls.describe(client.call_id)["reason"] == "hangup"
    assert rig.backend.told.count("close") == 1


def test_last_words_end_the_call_when_they_were_said() -> None:
    rig = Rig()
    client = rig.world.connect(rig.client())
    rig.world.calls.finish_all()
    assert rig.backend.client is not None
    rig.backend.client.end(rig.backend.finishing[0])
    rig.world.pump()
    assert rig.world.calls.describe(client.call_id)["reason"] == "shutdown"
    assert client.closed


@pytest.mark.parametrize("reached", ["new", "connecting"])
def test_a_call_that_nobody_hears_yet_ends_without_last_words(reached: str) -> None:
    rig = Rig()
    client = rig.client()
    if reached == "connecting":
        client.check()
        rig.world.pump()
    rig.world.calls.finish(client.call_id)
    assert rig.backend.finishing == []
    assert rig.world.calls.describe(client.call_id)["reason"] == "hangup"
