import pytest

from relayctl.wire import call_id
from relayctl.wire.route_token import Key, open_token
from tests.unit.transceiver.harness import VIP, Client, World
from transceiver import admission
from transceiver.admission import Refusal, Refused
from transceiver.backends.echo import Mode
from transceiver.calls import REMEMBERED_S, CallError, Reason
from transceiver.dialects.choice import DialectName
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
    with pytest.raises(Refused) as caught:
        world.client(9)
    assert caught.value.reason is Refusal.FULL
    assert world.counts.refused == {"overloaded": 1}
    world.calls.hang_up(clients[0].call_id)
    world.client(9)


def test_half_open_calls_are_counted_by_subject_until_they_are_connected(world: World) -> None:
    client = Client(("192.0.2.1", 5))
    client.call_id, answer = world.calls.create(client.offer(), (VIP,), DialectName.PLAIN, "me")
    client.take_answer(answer)
    other = world.client(9)
    assert world.calls.half_open() == {"me": 1, "": 1}
    world.connect(world.place(client))
    assert world.calls.half_open() == {"": 1}
    world.calls.hang_up(other.call_id)
    assert not world.calls.half_open()
    world.calls.hang_up(client.call_id)
    assert not world.calls._waiting


def test_a_subject_has_no_place_for_more_half_open_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_HALF_OPEN_OF_SUBJECT", 1)
    world = World()
    for subject in ("me", "you", "", ""):
        world.calls.create(Client(("192.0.2.1", 5)).offer(), (VIP,), DialectName.PLAIN, subject)
    with pytest.raises(Refused) as caught:
        world.calls.create(Client(("192.0.2.1", 5)).offer(), (VIP,), DialectName.PLAIN, "me")
    assert caught.value.reason is Refusal.SUBJECT
    assert world.counts.refused == {"too_many_half_open": 1}


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
    assert str(shown.pop("session")).startswith("sess_")
    statistics = shown.pop("statistics")
    assert isinstance(statistics, dict)
    assert statistics["packets_up"] == 1
    assert shown == {
        "id": client.call_id,
        "state": "connected",
        "client": "198.51.100.7:40000",
        "vip": "203.0.113.10:3478",
        "backend": "echo",
        "packets": {"up": 1, "down": 1},
        "bytes": {"up": 3, "down": 3},
        "lost": 0,
        "moves": 0,
        "version": 1,
        "client_ufrag": client.ufrag,
        "reason": None,
    }
    assert [phase for phase, _ in world.phases] == ["answer", "ice", "dtls", "first_audio"]


@pytest.mark.parametrize("mode", [Mode.OPUS, Mode.AUDIO])
def test_statistics_begin_with_the_media_and_outlive_the_call(mode: Mode) -> None:
    world = World(mode=mode)
    client = world.client()
    assert world.calls.describe(client.call_id)["statistics"] == {}
    world.connect(client)
    client.speak()
    world.pump()
    world.calls.hang_up(client.call_id)
    statistics = world.calls.describe(client.call_id)["statistics"]
    assert isinstance(statistics, dict)
    assert statistics["packets_up"] == 1


def test_repairs_outlive_the_call_in_the_process_totals() -> None:
    world = World(mode=Mode.AUDIO)
    client = world.connected()
    client.speak()
    client.sequence += 1  # one is lost
    client.speak()
    world.pump()
    world.run(0.5)
    statistics = world.calls.describe(client.call_id)["statistics"]
    assert isinstance(statistics, dict)
    assert statistics["concealed"] == 1
    assert world.counts.uplink["concealed"] == 0
    world.calls.hang_up(client.call_id)
    assert world.counts.uplink["concealed"] == 1


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


def test_a_call_is_not_there_for_another_subject(world: World) -> None:
    offer = Client(("192.0.2.1", 5)).offer()
    call_id, _ = world.calls.create(offer, (VIP,), DialectName.PLAIN, "me")
    for subject in ("you", ""):
        with pytest.raises(CallError) as caught:
            world.calls.hang_up(call_id, subject)
        assert refused(caught) is Reason.UNKNOWN
    world.calls.hang_up(call_id, "me")
    with pytest.raises(CallError) as caught:
        world.calls.hang_up(call_id, "you")  # nor is it when it has ended
    assert refused(caught) is Reason.UNKNOWN
    with pytest.raises(CallError) as caught:
        world.calls.hang_up(call_id, "me")
    assert refused(caught) is Reason.ENDED
