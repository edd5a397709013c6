import pytest

from relayctl.wire import call_id
from relayctl.wire.route_token import Key, open_token
from tests.unit.transceiver.harness import VIP, Client, World
from transceiver.calls import REMEMBERED_S, CallError, DialectName, Reason
from transceiver.sdp import SdpError


@pytest.fixture
def world() -> World:
    return World(capacity=3)


def refused(error: pytest.ExceptionInfo[CallError]) -> Reason:
    return error.value.reason


def test_the_id_carries_the_token_of_the_answer_and_a_secret(world: World) -> None:
    client = world.client()
    parsed = call_id.parse(client.call_id)
    assert parsed.token == client.token
    assert open_token({1: Key(1, bytes(32))}, parsed.token.encode()).port == 5000
    assert len({call_id.parse(world.client(n).call_id).secret for n in (1, 2)}) == 2


def test_the_password_has_at_least_128_random_bits(world: World) -> None:
    one, other = world.client(1), world.client(2)
    assert len(one.server_pwd) == 24  # base64 of 144 bits
    assert one.server_pwd != other.server_pwd


def test_a_wrong_secret_finds_nothing(world: World) -> None:
    client = world.client()
    token = call_id.parse(client.call_id).token
    other = call_id.CallId(token, "A" * 22).render()
    for text in (other, "rtc_nonsense", client.call_id[:-1]):
        with pytest.raises(CallError) as caught:
            world.calls.hang_up(text)
        assert refused(caught) is Reason.UNKNOWN
        assert "A" * 22 not in str(caught.value)
    assert len(world.calls) == 1


def test_full_is_refused_and_an_ended_call_makes_room(world: World) -> None:
    clients = [world.client(n) for n in range(3)]
    with pytest.raises(CallError) as caught:
        world.client(9)
    assert refused(caught) is Reason.FULL
    assert world.calls.full
    assert world.counts.refused == {"overloaded": 1}
    world.calls.hang_up(clients[0].call_id)
    world.client(9)


def test_a_bad_offer_holds_nothing(world: World) -> None:
    with pytest.raises(SdpError):
        world.calls.create("v=0", (VIP,), DialectName.PLAIN)
    with pytest.raises(ValueError, match=r"."):
        world.calls.create(Client(("192.0.2.1", 5)).offer(), (VIP, VIP), DialectName.PLAIN)
    assert len(world.calls) == 0
    assert len(world.mux.table) == 0


def test_an_ended_call_is_remembered_for_a_while(world: World) -> None:
    client = world.client()
    world.calls.hang_up(client.call_id)
    assert world.calls.describe(client.call_id)["reason"] == "hangup"
    for verb in (world.calls.hang_up, lambda it: world.calls.restart(it, client.offer())):
        with pytest.raises(CallError) as caught:
            verb(client.call_id)
        assert refused(caught) is Reason.ENDED
    world.now += REMEMBERED_S
    with pytest.raises(CallError) as caught:
        world.calls.describe(client.call_id)
    assert refused(caught) is Reason.UNKNOWN


def test_describes_a_call(world: World) -> None:
    client = world.connected()
    client.speak()
    world.pump()
    shown = world.calls.describe(client.call_id)
    timeline = shown.pop("timeline")
    assert isinstance(timeline, dict)
    assert timeline["channel_ms"] is None
    assert all(timeline[f"{phase}_ms"] is not None for phase in ("answer", "ice", "dtls"))
    assert shown.pop("rtt_ms") is not None
    assert shown == {
        "id": client.call_id,
        "state": "connected",
        "client": "198.51.100.7:40000",
        "vip": "203.0.113.10:3478",
        "packets": {"up": 1, "down": 1},
        "bytes": {"up": 3, "down": 3},
        "lost": 0,
        "moves": 0,
        "reason": None,
    }
    assert [phase for phase, _ in world.phases] == ["answer", "ice", "dtls", "first_audio"]


def test_all_end_with_the_process(world: World) -> None:
    clients = [world.connected(n, ssrc=n) for n in (1, 2)]
    world.calls.end_all()
    world.pump()
    assert all(client.closed for client in clients)
    assert world.counts.ended == {"shutdown": 2}
    assert len(world.calls) == 0


def test_a_thousand_calls_leave_nothing(world: World) -> None:
    for n in range(1000):
        client = world.client(1000 + n % 7)
        world.calls.hang_up(client.call_id)
    world.now += REMEMBERED_S
    client = world.client(9)
    world.calls.hang_up(client.call_id)
    assert len(world.calls) == len(world.mux.table) == 0
    assert len(world.calls._ended) == 1
