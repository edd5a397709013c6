import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.flow import Flow, FlowKey
from relayctl.messages import (
    PER_PART,
    Assembly,
    DeleteFlow,
    ExpireFlow,
    Failed,
    FlowsPart,
    Heartbeat,
    HintsChange,
    Message,
    MessageError,
    NexthopKept,
    NexthopReleased,
    NexthopReserved,
    OwnAddresses,
    ReloadKeys,
    RerouteFlows,
    RetireNexthop,
    RouteEntry,
    RoutesPart,
    Started,
    decode,
    decode_flow,
    encode,
    encode_flow,
    parts,
)
from relayctl.wire.address import Address

CLIENT = ("198.51.100.7", 40000)
FLOW = Flow(("10.2.0.2", 5000), 7, 5107, token=b"IWwJ+/iU", seen_up=12, bytes_down=2**40)


@pytest.mark.parametrize(
    "message",
    [
        RoutesPart(1, 0, 1, (RouteEntry("0.0.0.0/0", ((1, "10.3.0.1", 1500), (2, None, 9)), 3),)),
        HintsChange(((9, CLIENT, 1),), (3, 4)),
        ReloadKeys(),
        DeleteFlow(CLIENT, 1),
        ExpireFlow(CLIENT, 1),
        RerouteFlows(((CLIENT, 1), (CLIENT, 2))),
        OwnAddresses(("10.3.0.1", "::1")),
        RetireNexthop(7),
        Started(4711),
        Failed("no VIP"),
        NexthopReserved(7, 1, "10.3.0.1", 1500),
        NexthopReleased(7),
        NexthopKept(7),
        Heartbeat(5, 1, 2, 3, 4, 5, (1, 2), {64: 9}, displaced=6, takeovers=2),
        FlowsPart(1, 0, 1, (encode_flow(FlowKey(CLIENT, 1), FLOW),)),
    ],
    ids=lambda message: message.type,
)
def test_messages_survive_the_pipe(message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize("junk", [b"", b"{}", b'{"type":"sing"}', b'{"type":"retire"}', b"\xff"])
def test_junk_is_named(junk: bytes) -> None:
    with pytest.raises(MessageError):
        decode(junk)


@given(st.binary())
def test_decode_raises_only_message_error(data: bytes) -> None:
    with pytest.raises(MessageError):
        decode(data)


@pytest.mark.parametrize("client", [CLIENT, ("2001:db8::7", 40000)])
@pytest.mark.parametrize("endpoint", [FLOW.endpoint, ("fd00:2::2", 5000)])
def test_a_flow_as_text(client: Address, endpoint: Address) -> None:
    key, flow = FlowKey(client, 4095), FLOW._replace(endpoint=endpoint)
    assert decode_flow(encode_flow(key, flow)) == (key, flow)


@given(st.lists(st.integers(), max_size=3 * PER_PART))
def test_parts_come_together_again(items: list[int]) -> None:
    assembly: Assembly[int] = Assembly()
    results = [assembly.add(1, part, count, some) for part, count, some in parts(items)]
    assert results[-1] == items
    assert results[:-1] == [None] * (len(results) - 1)


def test_a_lost_part_voids_its_generation_and_no_other() -> None:
    assembly: Assembly[str] = Assembly()
    assert assembly.add(1, 0, 3, ["a"]) is None
    assert assembly.add(1, 2, 3, ["c"]) is None
    assert assembly.add(2, 1, 2, ["y"]) is None
    assert assembly.add(3, 0, 2, ["x"]) is None
    assert assembly.add(3, 1, 2, ["y"]) == ["x", "y"]
