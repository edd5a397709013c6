import asyncio
from collections.abc import Mapping
from ipaddress import IPv4Network

import pytest

from relayctl.control import sweeper as module
from relayctl.control.flow_slice import SIZE
from relayctl.control.sweeper import ENDS, Pass, Sweeper
from relayctl.datapath.base import Nexthop
from relayctl.flow import CLIENT_IDLE, CONFIRMED, NEW_LIFE, Expiry, Flow, FlowKey, State
from relayctl.messages import HintsChange, Message, RerouteFlows
from relayctl.routes import Hop, Route, Routes
from relayctl.wire.address import Address
from tests.unit.relayctl.memory_datapath import MemoryDatapath

NOW = 1000
ENDPOINT = ("10.2.0.2", 5000)
ROUTES = Routes(
    [
        Route(IPv4Network("0.0.0.0/0"), (Hop(1, "10.3.0.1"),)),
        Route(IPv4Network("10.2.0.0/24"), (Hop(2, None),)),
    ]
)
ENTRIES = {1: Nexthop(2, "10.2.0.2"), 2: Nexthop(1, "10.3.0.1")}


def key(number: int) -> FlowKey:
    return FlowKey(("198.51.100.7", 40000 + number), 1)


def _hint(ssrc: int, known: FlowKey) -> tuple[int, Address, int]:
    return ssrc, known.client, known.vip


def confirmed(**fields: int) -> Flow:
    flow = Flow(ENDPOINT, 7, 5107, flags=CONFIRMED, born=NOW, nexthop_in=1, nexthop_out=2)
    return flow._replace(**fields)  # type: ignore[arg-type]


class Fixture:
    def __init__(self, routing: tuple[Routes, Mapping[int, Nexthop]] | None = None) -> None:
        self.datapath = MemoryDatapath()
        self.sent: list[Message] = []
        self.takes_messages = True
        self.passes: list[Pass] = []
        self.sweeper = Sweeper(
            self.datapath, self._send, lambda: NOW, lambda: routing, self.passes.append
        )

    def _send(self, message: Message) -> bool:
        if self.takes_messages:
            self.sent.append(message)
        return self.takes_messages

    def sweep(self, flows: Mapping[FlowKey, Flow]) -> Pass:
        for each, flow in flows.items():
            self.datapath.flows.install(each, flow)
        asyncio.run(self.sweeper.sweep())
        return self.passes[-1]


def test_flows_that_are_over_go_and_the_others_are_counted() -> None:
    fixture = Fixture()
    found = fixture.sweep(
        {
            key(0): Flow(ENDPOINT, 7, 5107, born=NOW - NEW_LIFE),
            key(1): Flow(ENDPOINT, 7, 5107, born=NOW - NEW_LIFE - 1),
            key(2): confirmed(),
            key(3): confirmed(born=1, seen_up=NOW - CLIENT_IDLE - 1, seen_down=NOW),
            key(4): confirmed(born=1, seen_up=NOW, seen_down=NOW - 11),
        }
    )
    assert [each for each, _ in fixture.datapath.flows.items()] == [key(0), key(2)]
    assert found.states == {State.NEW: 1, State.CONFIRMED: 1}
    assert found.ended == {
        Expiry.UNCONFIRMED: 1,
        Expiry.CLIENT_SILENT: 1,
        Expiry.ENDPOINT_SILENT: 1,
    }
    assert fixture.sweeper.ended == found.ended
    assert fixture.sweeper.last is found


def test_a_flow_that_spoke_meanwhile_stays() -> None:
    class Racing(MemoryDatapath):
        """Between reading the table and reading one entry, the client speaks."""

        def revive(self) -> None:
            self.flows.get = lambda _: confirmed(born=1, seen_up=NOW, seen_down=NOW)  # type: ignore[method-assign,assignment]

    fixture = Fixture()
    fixture.datapath.flows.install(key(0), confirmed(born=1, seen_up=1, seen_down=1))
    Racing.revive(fixture.datapath)  # type: ignore[arg-type]
    found = fixture.sweep({})
    assert found.ended == {}
    assert [each for each, _ in fixture.datapath.flows.items()] == [key(0)]


def test_hints_are_told_once_and_taken_back() -> None:
    fixture = Fixture()
    fixture.sweep({key(0): confirmed(ssrc=5), key(1): confirmed(ssrc=6)})
    fixture.sweep({key(1): confirmed(ssrc=7)})
    fixture.sweep({})
    assert fixture.sent == [
        HintsChange((_hint(5, key(0)), _hint(6, key(1)))),
        HintsChange(removed=(6,)),
        HintsChange((_hint(7, key(1)),)),
    ]


def test_hints_that_found_the_pipe_full_are_told_later() -> None:
    fixture = Fixture()
    fixture.takes_messages = False
    fixture.sweep({key(0): confirmed(ssrc=5)})
    fixture.takes_messages = True
    fixture.sweep({})
    assert fixture.sent == [HintsChange((_hint(5, key(0)),))]


def test_flows_that_left_the_route_table_are_led_back() -> None:
    fixture = Fixture((ROUTES, ENTRIES))
    found = fixture.sweep(
        {
            key(0): confirmed(),
            key(1): confirmed(nexthop_out=1),
            key(2): confirmed(nexthop_in=0),
        }
    )
    assert fixture.sent == [RerouteFlows(tuple((key(n).client, 1) for n in (1, 2)))]
    assert found.used == {0, 1, 2}


def test_without_a_route_a_flow_keeps_its_nexthop() -> None:
    fixture = Fixture((Routes(), ENTRIES))
    fixture.sweep({key(0): confirmed()})
    assert fixture.sent == []


def test_a_large_table_is_swept_in_slices() -> None:
    fixture = Fixture()
    turns = 0

    async def beside() -> None:
        nonlocal turns
        while not fixture.passes:
            turns += 1
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(beside(), fixture.sweeper.sweep())

    fixture.datapath.flows.capacity = 3 * SIZE
    for number in range(3 * SIZE):
        flow = confirmed(born=1) if number < ENDS * 4 else confirmed()
        fixture.datapath.flows.install(key(number), flow)
    asyncio.run(both())
    assert fixture.passes[0].states[State.CONFIRMED] == 3 * SIZE - 4 * ENDS
    assert turns >= 3 + 4


def test_flows_are_counted_by_family() -> None:
    v6 = FlowKey(("2001:db8::7", 40000), 1)
    found = Fixture().sweep({key(0): confirmed(), v6: confirmed(), key(1): confirmed(flags=0)})
    assert found.flows == {
        (4, State.NEW): 1,
        (4, State.CONFIRMED): 1,
        (6, State.NEW): 0,
        (6, State.CONFIRMED): 1,
    }


def test_a_new_packet_process_hears_all_hints() -> None:
    fixture = Fixture()
    for _ in range(2):
        fixture.sweep({key(0): confirmed(ssrc=5)})
        fixture.sweeper.forget_hints()
    assert fixture.sent == [HintsChange((_hint(5, key(0)),))] * 2


def test_a_pass_tells_a_bounded_number_of_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_HINTS", 2)
    fixture = Fixture()
    flows = {key(number): confirmed(ssrc=number + 1) for number in range(5)}
    told = []
    for _ in range(3):
        fixture.sweep(flows)
        told.append(sum(len(each.added) for each in fixture.sent if isinstance(each, HintsChange)))
    assert told == [2, 4, 5]


def test_a_pass_leads_a_bounded_number_of_flows_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ASTRAY", 3)
    fixture = Fixture((ROUTES, ENTRIES))
    found = fixture.sweep({key(number): confirmed(nexthop_out=1) for number in range(9)})
    assert len(found.astray) == 3


@pytest.mark.parametrize(("took_s", "pause_s"), [(0.01, 1.0), (0.5, 5.0), (9.0, 10.0)])
def test_the_pause_follows_the_length_of_a_pass(
    monkeypatch: pytest.MonkeyPatch, took_s: float, pause_s: float
) -> None:
    pauses = []

    class Enough(Exception):
        pass

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        raise Enough

    async def sweep() -> None:
        fixture.sweeper.last.took_s = took_s

    fixture = Fixture()
    monkeypatch.setattr(fixture.sweeper, "sweep", sweep)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(Enough):
        asyncio.run(fixture.sweeper.run())
    assert pauses == [pause_s]


def test_nothing_is_swept_while_it_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.001)
    fixture, held = Fixture(), [True]

    async def run() -> None:
        task = asyncio.create_task(fixture.sweeper.run(lambda: held[0]))
        await asyncio.sleep(0.05)
        assert not fixture.passes
        held[0] = False
        await asyncio.sleep(0.5)
        assert fixture.passes
        task.cancel()

    asyncio.run(run())
