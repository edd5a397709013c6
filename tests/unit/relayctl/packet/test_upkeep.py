import pytest

from relayctl.flow import CONFIRMED, NEW_LIFE, Flow, FlowKey
from relayctl.packet.token_flows import MAX_CONFIRMED
from relayctl.packet.upkeep import Upkeep
from relayctl.packet.view import PacketView
from tests.unit.relayctl.memory_datapath import MemoryDatapath
from tests.unit.relayctl.packets import CLIENT_6, ENDPOINT, KEY, config

TOKEN = b"IWwJ+/iU"
KEYS = [FlowKey(("198.51.100.7", port), 1) for port in range(30)]
DUE = 100 + NEW_LIFE + 1


class Fixture:
    def __init__(self) -> None:
        self.datapath = MemoryDatapath()
        self.view = PacketView(config(), self.datapath, {1: KEY}, lambda *_: None)
        self.upkeep = Upkeep(self.view, self.datapath.flows)

    def install(
        self,
        key: FlowKey,
        flags: int = 0,
        born: int = 100,
        seen_up: int = 0,
        token: bytes = TOKEN,
    ) -> None:
        flow = Flow(ENDPOINT, 7, 5107, token, flags=flags, born=born, seen_up=seen_up)
        self.datapath.flows.install(key, flow)
        self.upkeep.installed(key, flow)

    def confirm(self, key: FlowKey) -> None:
        """As the program does it."""
        flow = self.datapath.flows.get(key)
        assert flow
        self.datapath.flows.install(key, flow._replace(flags=CONFIRMED))

    def keys(self) -> set[FlowKey]:
        return {key for key, _ in self.datapath.flows.items()}


@pytest.fixture
def fixture() -> Fixture:
    return Fixture()


def test_what_nobody_confirmed_ends(fixture: Fixture) -> None:
    for key in (KEYS[0], KEYS[1], FlowKey(CLIENT_6, 2)):
        fixture.install(key)
    fixture.confirm(KEYS[1])
    fixture.upkeep.beat(DUE - 1, 0)
    assert len(fixture.keys()) == 3
    fixture.upkeep.beat(DUE, 0)
    assert fixture.keys() == {KEYS[1]}
    assert [key for key, _ in fixture.view.crowd(TOKEN)] == [KEYS[1]]
    assert fixture.view.tombstones == {}
    assert fixture.upkeep.displaced == 0


def test_short_lived_flows_leave_nothing_behind(fixture: Fixture) -> None:
    for number, key in enumerate(KEYS):
        fixture.install(key, token=b"token%03d" % number)
    fixture.datapath.flows.delete(KEYS[0])  # somebody else was quicker
    fixture.view.tokens.purge = lambda *_: None  # type: ignore[method-assign]
    fixture.upkeep.beat(DUE, 0)
    assert len(fixture.view.tokens) == 0


def test_a_flow_that_was_made_again_has_its_own_time(fixture: Fixture) -> None:
    fixture.install(KEYS[0])
    fixture.datapath.flows.delete(KEYS[0])
    fixture.install(KEYS[0], born=102)
    fixture.upkeep.beat(DUE, 0)
    assert fixture.keys() == {KEYS[0]}
    fixture.upkeep.beat(DUE + 2, 0)
    assert fixture.keys() == set()


def test_the_longest_idle_confirmed_flow_goes_for_the_next(fixture: Fixture) -> None:
    for number, key in enumerate(KEYS[: MAX_CONFIRMED + 2]):
        fixture.install(key, seen_up=100 - number)
        fixture.confirm(key)
    fixture.upkeep.beat(DUE, 5)
    assert fixture.keys() == set(KEYS[:MAX_CONFIRMED])
    assert fixture.upkeep.displaced == 2
    assert set(fixture.view.tombstones) == set(KEYS[MAX_CONFIRMED : MAX_CONFIRMED + 2])


def test_a_displaced_flow_stays_away(fixture: Fixture) -> None:
    fixture.install(KEYS[0])
    fixture.upkeep.displace(KEYS[0], 5)
    fixture.upkeep.displace(KEYS[1], 5)  # ended meanwhile
    assert fixture.keys() == set()
    assert fixture.view.tombstones[KEYS[0]] > 5
    assert fixture.upkeep.displaced == 1


def test_a_start_takes_over_what_the_table_holds(fixture: Fixture) -> None:
    younger, older = FlowKey(CLIENT_6, 2), KEYS[1]
    fixture.install(younger, born=102)
    fixture.install(older)
    fixture.install(KEYS[2], flags=CONFIRMED)
    view = PacketView(config(), fixture.datapath, {1: KEY}, lambda *_: None)
    upkeep = Upkeep(view, fixture.datapath.flows)
    upkeep.adopt()
    assert {key for key, _ in view.crowd(TOKEN)} == {younger, older, KEYS[2]}
    upkeep.beat(DUE, 0)
    assert fixture.keys() == {younger, KEYS[2]}
    upkeep.beat(DUE + 2, 0)
    assert fixture.keys() == {KEYS[2]}


def test_tokens_without_flows_are_forgotten(fixture: Fixture) -> None:
    for key in KEYS[:3]:
        fixture.install(key, flags=CONFIRMED)
        fixture.datapath.flows.delete(key)
    for _ in range(3):
        fixture.upkeep.beat(50, 0)
    assert len(fixture.view.tokens) == 0
