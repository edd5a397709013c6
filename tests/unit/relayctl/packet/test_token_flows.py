import sys

from relayctl.flow import Flow, FlowKey
from relayctl.packet.token_flows import (
    MAX_CONFIRMED,
    MAX_NEW,
    UNKNOWN,
    TokenFlows,
    displaced_by_new,
    has_room,
    surplus,
)
from tests.unit.relayctl.packets import CLIENT_6, ENDPOINT

TOKEN, OTHER = b"IWwJ+/iU", b"IWwJ+/iV"
KEYS = [FlowKey(("198.51.100.7", port), 1) for port in range(30)]


class Table(dict[FlowKey, Flow]):
    """Flows, and how many were read."""

    reads = 0

    def read(self, key: FlowKey) -> Flow | None:
        self.reads += 1
        return self.get(key)

    def put(self, index: TokenFlows, key: FlowKey, token: bytes = TOKEN, flags: int = 0) -> None:
        self[key] = Flow(ENDPOINT, 7, 5107, token, flags=flags, born=100, seen_up=100)
        index.add(token, key)


def test_flows_of_a_token_in_the_order_they_came() -> None:
    index, table = TokenFlows(), Table()
    keys = [KEYS[2], FlowKey(CLIENT_6, 2), KEYS[1]]
    for key in [*keys, keys[0], keys[1]]:
        table.put(index, key)
    table.put(index, KEYS[4], OTHER)
    assert [key for key, _ in index.crowd(TOKEN, table.read)] == keys
    assert [key for key, _ in index.crowd(OTHER, table.read)] == [KEYS[4]]


def test_an_unknown_token_costs_no_read_and_is_not_counted() -> None:
    index, table = TokenFlows(), Table()
    table.put(index, KEYS[0], UNKNOWN)
    assert index.crowd(UNKNOWN, table.read) == index.crowd(TOKEN, table.read) == []
    assert (len(index), table.reads) == (0, 0)


def test_flows_that_ended_or_changed_their_token_are_forgotten() -> None:
    index, table = TokenFlows(), Table()
    for key in KEYS[:4]:
        table.put(index, key)
    del table[KEYS[0]]
    table.put(index, KEYS[1], OTHER)
    for _ in range(2):
        assert [key for key, _ in index.crowd(TOKEN, table.read)] == KEYS[2:4]
    assert table.reads == 4 + 2
    table.clear()
    assert index.crowd(TOKEN, table.read) == index.crowd(OTHER, table.read) == []
    assert len(index) == 0


def test_a_purge_looks_at_a_few_tokens_at_a_time_and_at_all_in_the_end() -> None:
    index, table = TokenFlows(), Table()
    for number, key in enumerate(KEYS):
        table.put(index, key, b"token%03d" % number)
    for key in KEYS[::2]:
        del table[key]
    index.purge(table.read, 4)
    for _ in range(3):
        index.purge(table.read, 4)
    assert (len(index), table.reads) == (30 - 6, 12)
    for _ in range(8):
        index.purge(table.read, 4)
    assert len(index) == 15
    table.clear()
    for _ in range(8):
        index.purge(table.read, 4)
    assert len(index) == 0


def test_many_flows_at_once() -> None:
    index, table = TokenFlows(), Table()
    tokens = [TOKEN, OTHER, UNKNOWN, TOKEN, TOKEN, UNKNOWN]
    for key, token in zip(KEYS, tokens, strict=False):
        table[key] = Flow(ENDPOINT, 7, 5107, token)
    index.adopt((flow.token, key) for key, flow in table.items())
    assert [key for key, _ in index.crowd(TOKEN, table.read)] == [KEYS[0], KEYS[3], KEYS[4]]
    assert [key for key, _ in index.crowd(OTHER, table.read)] == [KEYS[1]]
    assert len(index) == 2


def test_a_flow_that_ended_is_forgotten_without_a_read() -> None:
    index, table = TokenFlows(), Table()
    for key in KEYS[:3]:
        table.put(index, key)
    index.forget(TOKEN, KEYS[1])
    index.forget(TOKEN, KEYS[9])
    index.forget(OTHER, KEYS[0])
    assert table.reads == 0
    assert [key for key, _ in index.crowd(TOKEN, table.read)] == [KEYS[0], KEYS[2]]
    index.forget(TOKEN, KEYS[0])
    assert [key for key, _ in index.crowd(TOKEN, table.read)] == [KEYS[2]]
    index.forget(TOKEN, KEYS[0])
    index.forget(TOKEN, KEYS[2])
    assert len(index) == 0


def test_a_token_with_one_flow_takes_little_memory() -> None:
    index = TokenFlows()
    index.add(TOKEN, bytes(KEYS[0]))
    [known] = index._keys.values()
    assert sys.getsizeof(known) <= 48


def crowd_of(new: int, confirmed: int) -> list[tuple[FlowKey, Flow]]:
    states = [0] * new + [1] * confirmed
    return [
        (
            key,
            Flow(
                *(ENDPOINT, 7, 5107, TOKEN),
                flags=state,
                born=100 + number // 2,
                seen_up=200 + number,
            ),
        )
        for number, (key, state) in enumerate(zip(KEYS, states, strict=False))
    ]


def test_which_flow_goes_for_a_new_one() -> None:
    assert displaced_by_new(crowd_of(MAX_NEW - 1, MAX_CONFIRMED)) is None
    assert displaced_by_new(crowd_of(MAX_NEW, 0)) == KEYS[0]
    assert displaced_by_new(list(reversed(crowd_of(MAX_NEW, 0)))) == KEYS[1]
    assert displaced_by_new(crowd_of(1, 23)) == KEYS[0]
    assert has_room(crowd_of(1, 23))
    assert not has_room(crowd_of(0, 24))
    assert has_room(crowd_of(0, 23))


def test_the_longest_idle_confirmed_flows_are_too_many() -> None:
    assert surplus(crowd_of(8, MAX_CONFIRMED), 300) == []
    assert surplus(crowd_of(2, MAX_CONFIRMED + 3), 300) == KEYS[2:5]
