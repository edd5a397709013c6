"""Later offers of a call that are no ICE restart, or one that went wrong half-way."""

import contextlib
import random

import pytest

from tests.bench_signaling.mutants import CHANGES
from tests.unit.transceiver.harness import VIP, Client, World
from transceiver.demux import MAX_OFFERED
from transceiver.dialects.choice import DialectName
from transceiver.lifecycle import State
from transceiver.sdp import SdpError

VIDEO = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:v\r\na=sendrecv\r\na=rtpmap:96 VP8/90000\r\n"


@pytest.fixture
def world() -> World:
    return World()


def lines_of(answer: str, name: str) -> set[str]:
    return {line for line in answer.split("\r\n") if line.startswith(name)}


def echoes(world: World, client: Client) -> int:
    """How many of two packets come back."""
    before = len(client.heard)
    for _ in range(2):
        world.now += 0.02
        client.speak()
        world.pump()
    return len(client.heard) - before


def credentials(answer: str) -> tuple[set[str], set[str]]:
    return lines_of(answer, "a=ice-ufrag:"), lines_of(answer, "a=ice-pwd:")


def test_known_credentials_are_answered_in_kind_and_nobody_is_asked(world: World) -> None:
    client = world.connected()
    asked = len(world.mux.table)
    first = world.calls.restart(client.call_id, client.offer() + VIDEO)
    second = world.calls.restart(client.call_id, client.offer())
    assert credentials(first) == (
        {f"a=ice-ufrag:{client.token}"},
        {f"a=ice-pwd:{client.server_pwd}"},
    )
    assert credentials(second) == credentials(first)
    assert lines_of(first, "m=video") == {"m=video 0 UDP/TLS/RTP/SAVPF 96"}
    versions = [next(iter(lines_of(answer, "o="))).split()[1:3] for answer in (first, second)]
    assert [number for _, number in versions] == ["2", "3"]
    assert versions[0][0] == versions[1][0]
    assert not world.socket.sent
    assert len(world.mux.table) == asked
    assert echoes(world, client) == 2


@pytest.mark.parametrize(
    ("offered", "answered"), [("sendonly", "recvonly"), ("inactive", "inactive")]
)
def test_hold_and_resume(world: World, offered: str, answered: str) -> None:
    """On hold nothing is sent, and a minute later the call is still there."""
    client = world.connected()
    answer = world.calls.restart(client.call_id, client.offer(direction=offered))
    assert lines_of(answer, f"a={answered}")
    assert not lines_of(answer, "a=msid:")
    assert echoes(world, client) == 0
    world.run(60)
    assert world.call(client).state is State.CONNECTED
    answer = world.calls.restart(client.call_id, client.offer())
    assert lines_of(answer, "a=sendrecv")
    assert echoes(world, client) == 2
    numbers = [packet.sequence for packet in client.heard]
    assert (numbers[1] - numbers[0]) & 0xFFFF == 1


def test_a_client_that_only_listens_is_still_sent_to(world: World) -> None:
    client = world.connected()
    answer = world.calls.restart(client.call_id, client.offer(direction="recvonly"))
    assert lines_of(answer, "a=sendonly")
    assert echoes(world, client) == 2


def test_a_hold_before_the_handshake_counts(world: World) -> None:
    client = world.client()
    world.calls.restart(client.call_id, client.offer(direction="inactive"))
    client.check()
    world.pump()
    world.calls.restart(client.call_id, client.offer(direction="sendonly"))
    world.connect(client)
    assert client.connected
    assert echoes(world, client) == 0


def test_a_restart_asked_for_twice_is_one_restart(world: World) -> None:
    """The first answer got lost on its way."""
    client = world.connected()
    client.ufrag, client.pwd = "efgh", "anotherpasswordanother"
    first = world.calls.restart(client.call_id, client.offer())
    second = world.calls.restart(client.call_id, client.offer())
    assert credentials(first) == credentials(second)
    client.take_answer(second)
    client.check()
    world.pump()
    assert echoes(world, client) == 2


def test_a_restart_that_the_client_takes_back(world: World) -> None:
    client = world.connected()
    before, theirs = credentials(world.calls.restart(client.call_id, client.offer())), client.ufrag
    for new in ("efgh", "ijkl"):
        client.ufrag = new
        restarted = credentials(world.calls.restart(client.call_id, client.offer()))
        assert restarted != before
        client.ufrag = theirs
        assert credentials(world.calls.restart(client.call_id, client.offer())) == before
        assert echoes(world, client) == 2
    client.ufrag = "mnop"
    client.take_answer(world.calls.restart(client.call_id, client.offer()))
    world.move(client, 40002)
    client.check()
    world.pump()
    assert echoes(world, client) == 2
    assert world.call(client).describe()["client"] == "198.51.100.7:40002"


@pytest.mark.parametrize("part", ["ufrag", "pwd"])
def test_one_new_credential_is_a_restart_too(world: World, part: str) -> None:
    client = world.connected()
    setattr(client, part, "0123456789012345678901")
    answer = world.calls.restart(client.call_id, client.offer())
    assert credentials(answer)[0] != {f"a=ice-ufrag:{client.token}"}


def test_a_new_source_is_looked_for_in_this_call(world: World) -> None:
    client = world.connected()
    client.ssrc = 0x77
    world.calls.restart(client.call_id, client.offer())
    world.move(client, 40007)
    assert echoes(world, client) >= 1
    assert world.call(client).describe()["client"] == "198.51.100.7:40007"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(("a=mid:0", "a=mid:1"), "bundle_changed", id="mid"),
        pytest.param(("m=audio", VIDEO + "m=audio"), "bundle_changed", id="place"),
        pytest.param(("setup:actpass", "setup:passive"), "bundle_changed", id="role"),
        pytest.param(("sha-256 ", "sha-256 00:"), "no_fingerprint", id="fingerprint"),
        pytest.param(("m=audio 9", "m=video 9"), "no_audio", id="no_audio"),
        pytest.param(("v=0", "v=1"), "bad_sdp", id="nonsense"),
    ],
)
def test_a_refused_offer_leaves_the_call_as_it_was(
    world: World, change: tuple[str, str], reason: str
) -> None:
    client = world.connected()
    table = len(world.mux.table)
    bad = client.offer(direction="inactive").replace(*change)
    bad = bad.replace("BUNDLE 0", "BUNDLE 1") if change[1] == "a=mid:1" else bad
    bad = bad.replace("a=ice-ufrag:abcd", "a=ice-ufrag:wxyz")
    with pytest.raises(SdpError) as caught:
        world.calls.restart(client.call_id, bad)
    assert caught.value.reason == reason
    assert len(world.mux.table) == table
    assert echoes(world, client) == 2
    answer = world.calls.restart(client.call_id, client.offer())
    assert credentials(answer)[0] == {f"a=ice-ufrag:{client.token}"}
    assert next(iter(lines_of(answer, "o="))).split()[2] == "2"


def test_a_client_that_was_the_dtls_server_may_offer_actpass_later(world: World) -> None:
    client = world.place(Client(("198.51.100.7", 40010), is_dtls_server=True))
    offer = client.offer(setup="passive")
    client.call_id, answer = world.calls.create(offer, (VIP,), DialectName.PLAIN)
    client.take_answer(answer)
    client.hello(world.now)
    client.check()
    world.pump()
    again = world.calls.restart(client.call_id, client.offer(setup="actpass"))
    assert lines_of(answer, "a=setup:") == lines_of(again, "a=setup:") == {"a=setup:active"}
    assert echoes(world, client) == 2


def test_a_thousand_offers_leave_as_much_as_one(world: World) -> None:
    client = world.connected()
    for ssrc in range(1000):
        client.ssrc, client.ufrag = ssrc, f"name{ssrc}"
        world.calls.restart(client.call_id, client.offer())
    assert len(world.mux.table) <= MAX_OFFERED + 8
    world.calls.hang_up(client.call_id)
    assert len(world.mux.table) == 0


def test_whatever_comes_as_a_later_offer_the_call_goes_on(world: World) -> None:
    """A restart among it is one that the client takes back at the end."""
    client = world.connected()
    good = client.offer()
    dice = random.Random(36)
    accepted = 0
    for nth in range(600):
        changed = CHANGES[nth % len(CHANGES)](dice, good.splitlines())
        if isinstance(changed, list):
            changed = "\r\n".join([*changed, ""]).encode()
        with contextlib.suppress(SdpError):
            world.calls.restart(client.call_id, changed.decode(errors="replace"))
            accepted += 1
    assert 100 < accepted < 500
    answer = world.calls.restart(client.call_id, good)
    assert credentials(answer)[0] == {f"a=ice-ufrag:{client.token}"}
    assert echoes(world, client) == 2
    assert len(world.mux.table) <= MAX_OFFERED + 8
