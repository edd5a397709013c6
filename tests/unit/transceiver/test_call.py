"""One call from its offer to its end, over a network that the tests own."""

import itertools
from dataclasses import replace

import pytest
from aiortc.rtp import RtcpByePacket, RtcpReceiverInfo, RtcpRrPacket

from relayctl.wire import spp
from relayctl.wire.call_id import parse
from tests.unit.transceiver.harness import (
    FRAME,
    OTHER_RELAY,
    RELAY,
    VIP,
    Client,
    World,
    garbage_rtp,
    is_dtls,
    lose_nth,
    no_loss,
)
from tests.unit.transceiver.records import ALERT, DATA, HANDSHAKE, record
from transceiver import aiortc_parts
from transceiver.backends.echo import Mode
from transceiver.call import Call
from transceiver.dialects.choice import DialectName
from transceiver.lifecycle import End, State
from transceiver.sdp import SdpError
from transceiver.stream import BURST


@pytest.fixture
def world() -> World:
    return World()


def test_connects_and_echoes(world: World) -> None:
    client = world.connected()
    call = world.call(client)
    assert call.state is State.CONNECTED
    for _ in range(5):
        client.speak()
        world.pump()
    assert [packet.payload for packet in client.heard] == [FRAME] * 5
    assert len({packet.ssrc for packet in client.heard}) == 1
    assert client.mapped == client.address


def test_echo_keeps_timestamps_and_numbers_continuously_over_a_lost_packet(world: World) -> None:
    client = world.connected()
    for n in range(6):
        client.speak()
        if n == 2:
            client.outbox.clear()
        world.pump()
    numbers = [packet.sequence for packet in client.heard]
    stamps = [packet.timestamp for packet in client.heard]
    assert [b - a for a, b in itertools.pairwise(numbers)] == [1, 1, 1, 1]
    assert [b - a for a, b in itertools.pairwise(stamps)] == [960, 1920, 960, 960]
    assert world.call(client).describe()["lost"] == 1


def test_is_bytes_until_the_first_authentic_check(world: World) -> None:
    client = world.client()
    call = world.call(client)
    world.up(client.address, client.check_bytes(pwd="wrongpasswordwrongpassw"))
    assert call.state is State.NEW
    assert not world.socket.sent
    assert call._stream is None
    assert world.counts.dropped["wrong_integrity"] == 1


def test_is_connecting_before_it_is_proven_and_makes_no_tls_object(world: World) -> None:
    client = world.client(answers_checks=False)
    client.check()
    world.pump()
    assert world.call(client).state is State.CONNECTING
    assert world.call(client)._stream is None


@pytest.mark.parametrize(("direction", "n"), [("up", 1), ("down", 1), ("up", 2), ("down", 2)])
def test_a_lost_handshake_datagram_costs_little(world: World, direction: str, n: int) -> None:
    """Ours are repeated by us, the client's by the client: here its transport is ours as well."""
    world.lose = lose_nth(direction, n)
    client = world.connect(world.client())
    took = world.run(2, until=lambda: client.connected and world.call(client).state == "connected")
    assert took <= 0.151


def test_the_last_flight_is_repeated_byte_for_byte(world: World) -> None:
    client = world.client()
    client.check()
    world.pump()
    flights: list[tuple[float, bytes]] = []

    def lose(direction: str, payload: bytes) -> bool:
        if direction == "down" and is_dtls(payload):
            flights.append((round(world.now - 1000, 2), payload))
        return direction == "down" and is_dtls(payload)

    world.lose = lose
    client.hello(world.now)
    client.dtls = None  # it says nothing more
    world.pump()
    world.run(0.95)
    due = [0.0, 0.1, 0.2, 0.4, 0.8]
    assert len(flights) == len(due)
    assert all(0 <= at - when <= 0.05 for (at, _), when in zip(flights, due, strict=True))
    assert len({payload for _, payload in flights}) == 1


def test_early_dtls_is_kept_until_the_path_is_proven(world: World) -> None:
    client = world.client()
    client.answers_checks = False
    client.check()
    world.pump()
    client.hello(world.now)
    world.pump()
    assert not client.connected
    client.answers_checks = True
    world.run(1, until=lambda: client.connected)
    assert client.connected


def test_at_most_four_early_datagrams_are_kept(world: World) -> None:
    client = world.client(answers_checks=False)
    client.check()
    world.pump()
    for _ in range(9):
        world.up(client.address, record(HANDSHAKE, b"\x01" + bytes(11)))
    assert world.counts.dropped["early_dtls"] == 5


@pytest.mark.parametrize("when", ["early", "before_the_hello", "after_the_hello", "connected"])
def test_forged_alerts_and_garbage_end_no_call(world: World, when: str) -> None:
    client, forged = (
        world.client(),
        [
            record(ALERT, b"\2\x28"),  # fatal: handshake_failure
            record(ALERT, b"\1\0"),  # close_notify
            record(DATA, b"hello"),
            record(HANDSHAKE, bytes(30)),
            *(record(kind, bytes(60), epoch=1) for kind in (ALERT, DATA, HANDSHAKE)),
        ],
    )
    if when == "early":
        client.answers_checks = False
    client.check()
    world.pump()
    if when == "after_the_hello":
        world.lose = lose_nth("down", 1)
    if when in ("after_the_hello", "connected"):
        client.hello(world.now)
        world.pump()
        world.lose = no_loss
    assert client.connected == (when == "connected")
    for datagram in forged * 3:
        world.up(client.address, datagram)
    client.answers_checks = True
    if when in ("early", "before_the_hello"):
        client.hello(world.now)
    world.run(0.5)
    client.speak()
    world.pump()
    assert len(client.heard) == 1
    assert world.call(client).state is State.CONNECTED


def test_a_wrong_certificate_ends_the_call_and_gets_no_finished(world: World) -> None:
    client = world.client(fingerprint="sha-256 " + ":".join(["AB"] * 32))
    world.connect(client)
    assert not client.connected
    assert world.calls.describe(client.call_id)["reason"] == End.FINGERPRINT_MISMATCH


def test_close_notify_ends_the_call_at_once_and_is_answered(world: World) -> None:
    client = world.connected()
    assert client.dtls is not None
    client.dtls.close()
    world.pump()
    assert world.calls.describe(client.call_id)["reason"] == End.CLOSED_BY_PEER
    assert len(world.mux.table) == 0


def test_hang_up_says_close_notify(world: World) -> None:
    client = world.connected()
    world.calls.hang_up(client.call_id)
    world.pump()
    assert client.closed


def test_an_abandoned_offer_holds_nothing_after_the_watchdog(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="transceiver")
    for port in range(41000, 41010):
        world.client(port)
    silent = world.client(answers_checks=False)
    silent.check()
    world.run(14.8)
    assert len(world.calls) == 11
    world.run(0.3)
    assert len(world.calls) == 0
    assert len(world.mux.table) == 0
    assert world.counts.ended == {End.SETUP_TIMEOUT: 11}
    assert "ended client=- reason=setup_timeout reached=answer" in caplog.text


def test_away_and_back_and_lost(world: World) -> None:
    client = world.connected()

    def state() -> State:
        return world.call(client).state

    client.answers_checks = False
    world.run(10.5)
    assert state() is State.AWAY
    reports = client.reports
    world.run(6)
    assert client.reports == reports  # nothing is played out
    before = len(client.heard)
    client.check()
    world.pump()
    assert state() is State.CONNECTED
    client.speak()
    world.pump()
    assert len(client.heard) == before + 1
    world.run(31)
    assert world.calls.describe(client.call_id)["reason"] == End.CONSENT_LOST


def test_a_rebound_speaker_is_found_by_its_ssrc(world: World) -> None:
    client = world.connected()
    client.speak()
    world.pump()
    world.move(client, 40001)
    world.now += 0.02
    client.speak()
    world.pump()  # SRTP from an unknown path, our check, its answer
    world.now += 0.02
    client.speak()
    world.pump()
    assert world.call(client).describe()["client"] == "198.51.100.7:40001"
    assert world.counts.moves == 1
    assert len(client.heard) >= 2


def test_a_rebound_speaker_that_never_spoke_before_is_found_by_its_offer(world: World) -> None:
    client = world.connected()
    world.move(client, 40001)
    for _ in range(2):
        world.now += 0.02
        client.speak()
        world.pump()
    assert world.call(client).describe()["client"] == "198.51.100.7:40001"


def test_a_rebound_speaker_is_found_by_a_source_that_its_offer_did_not_name(world: World) -> None:
    client = world.connected()
    client.ssrc = 0x99887766
    client.speak()
    world.pump()
    world.move(client, 40001)
    for _ in range(2):
        world.now += 0.02
        client.speak()
        world.pump()
    assert world.call(client).describe()["client"] == "198.51.100.7:40001"


def test_a_rebound_speaker_is_not_found_by_a_vip_of_another_call(world: World) -> None:
    client = world.connected()
    world.now += 0.02
    client.speak()
    world.up(("198.51.100.7", 40001), client.outbox.pop(), vip=("203.0.113.99", 3478))
    assert not world.socket.sent


def test_many_rebindings_leave_few_paths(world: World) -> None:
    client = world.connected()
    for n in range(60):
        world.move(client, 41000 + n)
        world.now += 0.02
        client.speak()
        world.pump()
        world.run(0.1)
    assert world.call(client).describe()["client"] == "198.51.100.7:41059"
    assert len(world.call(client)._reach) <= 16
    assert len(world.mux.table) <= 16 * 2 + 3


def test_srtp_of_an_unknown_path_that_is_not_authentic_causes_nothing(world: World) -> None:
    client = world.connected()
    client.speak()
    world.pump()
    world.up(("198.51.100.66", 6666), garbage_rtp(client.ssrc))
    assert not world.socket.sent
    assert world.counts.dropped["unknown_path"] == 1


def test_what_is_not_authentic_does_not_change_the_relay_that_we_answer_by(world: World) -> None:
    client = world.connected()
    world.relay = OTHER_RELAY
    world.up(client.address, garbage_rtp(client.ssrc))
    world.up(client.address, client.check_bytes(pwd="wrongpasswordwrongpassw"))
    world.up(client.address, b"\x17\xfe\xfd" + bytes(40))
    world.relay = RELAY
    world.vias.clear()
    world.run(6)  # reports and consent checks go out
    assert len(world.vias) >= 2
    assert set(world.vias) == {RELAY}


@pytest.mark.parametrize("what", ["check", "srtp"])
def test_answers_go_by_the_relay_of_the_last_authentic_packet(world: World, what: str) -> None:
    client = world.connected()
    world.relay = OTHER_RELAY
    world.vias.clear()
    if what == "check":
        client.check()
    else:
        client.speak()
    world.pump()
    assert set(world.vias) == {OTHER_RELAY}


def test_the_header_of_the_path_comes_back(world: World) -> None:
    client = world.client()
    client.check()
    world.up(client.address, client.outbox.pop())
    header, _ = spp.split(world.socket.sent[0][0])
    assert header == spp.encode(spp.Header(client.address, VIP))


def test_a_vip_of_another_call_is_no_path(world: World) -> None:
    client = world.client()
    world.up(client.address, client.check_bytes(), vip=("203.0.113.99", 3478))
    assert not world.socket.sent
    assert world.counts.dropped["wrong_vip"] == 1


def test_restart_keeps_the_call_with_a_new_token(world: World) -> None:
    client = world.connected()
    call = world.call(client)
    old = client.token
    client.ufrag, client.pwd = "efgh", "anotherpasswordanother"
    answer = world.calls.restart(client.call_id, client.offer())
    client.speak()
    world.pump()
    assert len(client.heard) == 1  # the old path carries on
    client.take_answer(answer)
    assert client.token != old
    world.move(client, 40002)
    client.check()
    world.pump()
    client.speak()
    world.pump()
    assert len(client.heard) == 2
    assert world.call(client) is call
    assert call.describe()["client"] == "198.51.100.7:40002"
    assert world.mux.table.request(old.encode()) is None


@pytest.mark.parametrize("port", [40000, 40002])
def test_restart_by_credentials_alone_keeps_the_media(world: World, port: int) -> None:
    """From another port, and from the same, where old and new differ by their credentials only."""
    client = world.connected()
    old = client.token
    client.ufrag, client.pwd = "efgh", "anotherpasswordanother"
    answer = world.calls.restart_ice(client.call_id, client.ufrag, client.pwd)
    client.speak()
    world.pump()
    assert len(client.heard) == 1  # by the old path
    client.take_answer(answer)
    world.move(client, port)
    client.check()
    world.pump()
    client.speak()
    world.pump()
    assert len(client.heard) == 2
    assert world.mux.table.request(old.encode()) is None


def test_restart_for_another_certificate_is_refused_and_changes_nothing(world: World) -> None:
    client = world.connected()
    client.fingerprint = "sha-256 " + ":".join(["AB"] * 32)
    with pytest.raises(SdpError):
        world.calls.restart(client.call_id, client.offer())
    client.speak()
    world.pump()
    assert len(client.heard) == 1


def test_a_thief_of_the_same_process_gets_nothing(world: World) -> None:
    """He has a call of his own and spoofs the victim's address; he cannot answer our check."""
    victim = world.connected()
    thief = world.client(port=50000, ufrag="evil", ssrc=0x99)
    for n in range(100):
        world.up(victim.address, thief.check_bytes())
        victim.speak()
        world.pump()
        world.run(0.05)
        assert len(victim.heard) == n + 1
    assert world.call(thief).describe()["client"] is None
    assert world.call(victim).state is State.CONNECTED


def test_a_reloaded_page_on_the_same_port_takes_its_path(world: World) -> None:
    old = world.connected()
    new = world.client(port=old.address[1], ufrag="wxyz", ssrc=0x77)
    world.connect(new)
    assert new.connected
    new.speak()
    world.pump()
    assert len(new.heard) == 1
    assert not old.heard
    assert world.call(old)._reach.agent.selected is None  # and sends nothing there


def test_an_idle_call_is_woken_for_what_is_due_and_for_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = world.connected()
    world.run(2)
    call, woken = world.call(client), []

    def timer(now: float) -> None:
        woken.append(now)
        Call.timer(call, now)

    monkeypatch.setattr(call, "timer", timer)
    world.run(60)
    # 20 reports, 10 to 15 consents, some of them at a report's time; and a look whether it is away
    # each 4 s at most.
    assert 20 <= len(woken) <= 60
    assert call.state is State.CONNECTED


def test_a_gap_in_the_audio_wakes_the_call_when_the_backend_asked_for_it() -> None:
    world = World(mode=Mode.AUDIO)
    client = world.connected()
    for _ in range(5):
        client.speak()
        world.pump()
        world.run(0.05)
    client.sequence += 1  # this one gets lost
    client.speak()
    world.pump()
    held = len(client.heard)
    world.run(0.1)  # and then the client is silent
    assert len(client.heard) >= held + 2


def test_a_path_that_falls_silent_is_asked_though_only_records_come_from_another(
    world: World,
) -> None:
    client = world.connected()
    spare = world.place(replace(client, address=("198.51.100.7", 40009), outbox=[]))
    spare.check(nominate=False)
    world.pump()
    for _ in range(20):
        client.speak()
        world.pump()
        world.run(0.1)
    asked: list[float] = []

    def lose(direction: str, payload: bytes) -> bool:
        if direction == "down" and payload[:2] == b"\x00\x01":
            asked.append(world.now)
        return False

    world.lose = lose
    silent_since = world.now
    for _ in range(3):
        assert client.dtls is not None
        aiortc_parts.run(client.dtls._send_data(b"still here"))
        spare.outbox[:], client.outbox[:] = client.outbox.copy(), []
        world.pump()
        world.run(0.4)
    assert asked
    assert 1.0 <= asked[0] - silent_since + 0.1 <= 1.2


def test_reports_are_sent(world: World) -> None:
    client = world.connected()
    client.speak()
    world.run(8)
    assert client.reports == 3


def test_reports_of_the_client_are_heard_and_its_bye_ends_no_call(world: World) -> None:
    client = world.connected()
    client.speak()
    world.pump()
    assert client.dtls is not None
    assert client.dtls.srtp is not None
    ssrc = world.call(client)._local.ssrc
    for compound in (
        bytes(RtcpRrPacket(client.ssrc, [RtcpReceiverInfo(ssrc, 64, 9, 100, 0, 0, 0)])),
        bytes(RtcpByePacket([client.ssrc])),
        b"\x80\xc9\xff\xff" + bytes(8),
    ):
        client.outbox.append(client.dtls.srtp.protect_rtcp(compound))
    world.pump()
    statistics = world.calls.describe(client.call_id)["statistics"]
    assert isinstance(statistics, dict)
    assert statistics["fraction_lost"] == 0.25
    assert world.counts.dropped == {"bad_rtcp": 1}
    client.speak()
    world.pump()
    assert len(client.heard) == 2


def test_audio_that_comes_faster_than_any_is_counted_and_not_heard(world: World) -> None:
    client = world.connected()
    for _ in range(BURST + 50):
        client.speak()
    world.pump()
    assert len(client.heard) == BURST
    assert world.counts.dropped == {"too_fast": 50}
    assert world.calls.describe(client.call_id)["packets"] == {"up": BURST + 50, "down": BURST}
    for _ in range(40):  # 2.5 ms in each
        world.now += 0.0025
        client.speak()
        world.pump()
    assert len(client.heard) == BURST + 40


def test_a_listener_only_gets_what_it_asked_for(world: World) -> None:
    client = world.place(world.client(port=40009))
    client.call_id, answer = world.calls.create(
        client.offer(direction="sendonly"), (VIP,), DialectName.PLAIN
    )
    client.dtls = None
    client.take_answer(answer)
    world.connect(client)
    client.speak()
    world.pump()
    assert not client.heard
    assert world.call(client).describe()["packets"] == {"up": 1, "down": 0}


def test_is_the_dtls_client_when_the_offer_insists(world: World) -> None:
    client = world.place(Client(("198.51.100.7", 40010), is_dtls_server=True))
    client.call_id, answer = world.calls.create(
        client.offer(setup="passive"), (VIP,), DialectName.PLAIN
    )
    client.take_answer(answer)
    client.hello(world.now)
    client.check()
    world.pump()
    assert client.connected
    client.speak()
    world.pump()
    assert len(client.heard) == 1


def test_a_fault_of_ours_ends_that_call_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, whole = world.connected(), world.connected(40100, ssrc=0x55)
    call = world.call(broken)
    monkeypatch.setattr(call, "timer", lambda now: 1 / 0)
    world.run(2)
    assert world.calls.describe(broken.call_id)["reason"] == End.INTERNAL_ERROR
    assert world.call(whole).state is State.CONNECTED


def test_the_log_has_no_secret_and_no_client_address(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="transceiver")
    client = world.connected()
    world.calls.hang_up(client.call_id)
    secret = parse(client.call_id).secret
    assert "connected client=198.51.100.0/24" in caplog.text
    assert "reason=hangup" in caplog.text
    for hidden in (secret, client.server_pwd, client.pwd, client.address[0]):
        assert hidden not in caplog.text
