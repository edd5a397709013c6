"""Clients as other servers met them: odd credentials, odd candidates, odd nominations."""

import itertools
import socket
import string

import pytest
from aioice import stun

from tests.unit.transceiver.harness import VIP, Client, World, is_dtls, lose_nth
from transceiver.dialects.choice import DialectName
from transceiver.ice.stun import ERROR_CODE, parse
from transceiver.lifecycle import State

EVERY_LETTER = string.ascii_letters + string.digits + "+/"  # ice-char, RFC 8839 section 5.4


@pytest.fixture
def world() -> World:
    return World()


def works(world: World, client: Client) -> bool:
    before = len(client.heard)
    client.speak()
    world.pump()
    return len(client.heard) == before + 1


@pytest.mark.parametrize(
    "ufrag", ["abcd", EVERY_LETTER, (EVERY_LETTER * 5)[:256]], ids=["4", "64", "256"]
)
def test_a_user_name_of_any_length_is_compared_whole(world: World, ufrag: str) -> None:
    client = world.connected(ufrag=ufrag, pwd=ufrag[:1] * 256)
    assert works(world, client)
    client.ufrag = ufrag[:-1] + "Z"
    world.up(client.address, client.check_bytes())
    assert world.counts.dropped == {"wrong_username": 1}


CANDIDATES = (
    "a=candidate:1 1 udp 2113937151 5b2c0a4e-8f0e-4b0a-9c53-0a5ad6d2ae2b.local 50000 typ host",
    "a=candidate:2 1 udp 2113937151 an.example.invalid 50000 typ host",
    "a=candidate:3 1 udp 1 0.0.0.0 0 typ srflx raddr 0.0.0.0 rport 0",
    "a=candidate:",
    "a=candidate:1 1 tcp 1 ::1 9 typ host tcptype active",
)


ENDED = ("a=end-of-candidates",)


@pytest.mark.parametrize(
    "lines",
    [(), CANDIDATES[:1], CANDIDATES, ENDED, CANDIDATES[:1] + ENDED],
    ids=["none", "mdns", "odd", "ended_without_any", "mdns_and_ended"],
)
def test_candidates_of_the_client_are_neither_needed_nor_resolved(
    world: World, lines: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(*anything: object) -> None:
        raise AssertionError("a name was resolved")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "gethostbyname", resolve)
    client = world.place(Client(("198.51.100.7", 40000)))
    offer = client.offer() + "".join(f"{line}\r\n" for line in lines)
    client.call_id, answer = world.calls.create(offer, (VIP,), DialectName.PLAIN)
    client.take_answer(answer)
    world.connect(client)
    assert works(world, client)


def test_a_role_conflict_in_the_midst_of_the_handshake_costs_nothing(world: World) -> None:
    client = world.client()
    client.check()
    world.pump()
    world.lose = lose_nth("down", 1, is_dtls)
    client.hello(world.now)
    world.pump()
    conflict = stun.parse_message(client.check_bytes())
    conflict.attributes = {
        "USERNAME": conflict.attributes["USERNAME"],
        "ICE-CONTROLLED": 1,
        "PRIORITY": 1,
    }
    conflict.add_message_integrity(client.server_pwd.encode())
    world.up(client.address, bytes(conflict))
    ((datagram, _),) = world.socket.sent
    error = parse(datagram[38:])
    assert error.verify(client.server_pwd)
    assert error.attributes[ERROR_CODE][2:4] == b"\x04\x57"
    world.socket.sent.clear()
    world.run(0.3)
    assert works(world, client)
    assert world.call(client).state is State.CONNECTED


class Multihomed:
    """One client behind several addresses that it sends from."""

    def __init__(self, world: World, ways: int) -> None:
        self.world = world
        self.client = world.connected()
        self.ways = [("198.51.100.7", 41000 + n) for n in range(ways)]
        for way in self.ways:
            world.clients[way] = self.client
        self.client.outbox.clear()

    def check(self, way: int, *, nominate: bool) -> None:
        self.say(way, self.client.check_bytes(nominate=nominate))

    def speak(self, way: int) -> None:
        self.client.speak()
        self.say(way, self.client.outbox.pop())

    def say(self, way: int, payload: bytes) -> None:
        """Send from `way`, and answer from there."""
        self.world.clients.pop(self.client.address, None)
        self.client.address = self.ways[way]
        self.world.clients = {self.ways[way]: self.client}
        self.client.outbox.append(payload)
        self.world.pump()
        self.world.clients = dict.fromkeys(self.ways, self.client)

    @property
    def selected(self) -> int:
        shown = self.world.call(self.client).describe()["client"]
        return [f"{host}:{port}" for host, port in self.ways].index(str(shown))


def test_aggressive_nomination_of_two_ways_settles(world: World) -> None:
    both = Multihomed(world, 2)
    moves: list[int] = []
    for _ in range(40):
        for way in (0, 1):
            both.check(way, nominate=True)
            moves.append(both.selected)
        world.now += 0.1
    changes = sum(a != b for a, b in itertools.pairwise(moves))
    assert changes <= 4
    assert len(set(moves[-20:])) == 1


def test_the_nominated_way_is_used_though_another_is_better(world: World) -> None:
    both = Multihomed(world, 2)
    both.check(0, nominate=False)
    both.check(1, nominate=True)
    assert both.selected == 1
    world.now += 5
    both.check(0, nominate=False)
    assert both.selected == 1
    both.check(0, nominate=True)
    assert both.selected == 0


def test_renomination_follows_at_once_and_every_packet_comes_back(world: World) -> None:
    roaming = Multihomed(world, 4)
    for turn in range(12):
        way = turn % 4
        world.now += 1.0 if turn < 4 else 25.0
        roaming.check(way, nominate=True)
        heard = len(roaming.client.heard)
        for _ in range(3):
            world.now += 0.02
            roaming.speak(way)
        assert roaming.selected == way
        assert len(roaming.client.heard) == heard + 3


def test_a_few_lost_checks_end_nothing(world: World) -> None:
    client = world.connected()
    client.answers_checks = False
    world.run(8)
    assert world.call(client).state is State.CONNECTED
    client.answers_checks = True
    world.run(6)
    assert world.call(client).state is State.CONNECTED
    assert works(world, client)


class Satellite(World):
    """Every datagram takes `DELAY_S`."""

    DELAY_S = 0.3

    def __init__(self) -> None:
        super().__init__()
        self.under_way: list[tuple[float, Client | None, bytes]] = []  # due, to (None: to us), what

    def pump(self) -> None:
        arrives = self.now + self.DELAY_S
        for client in self.clients.values():
            self.under_way += [(arrives, None, payload) for payload in client.outbox]
            client.outbox.clear()
        for datagram, via in self.socket.sent:
            address, payload = self._open(datagram, via)
            self.under_way.append((arrives, self.clients[address], payload))
        self.socket.sent.clear()
        due = [each for each in self.under_way if each[0] <= self.now]
        self.under_way = [each for each in self.under_way if each[0] > self.now]
        (only,) = self.clients.values()
        for _, target, payload in due:
            if target is None:
                self.up(only.address, payload)
            else:
                target.receive(payload, self.now)


def test_a_way_of_600_ms_connects_and_stays() -> None:
    world = Satellite()
    client = world.client()
    client.check()
    assert world.run(5, until=lambda: client.responses > 0) < 1
    client.hello(world.now)
    assert world.run(10, until=lambda: client.connected) < 4 * 2 * Satellite.DELAY_S
    world.run(60)
    client.speak()
    world.run(1)
    assert world.call(client).state is State.CONNECTED
    assert len(client.heard) == 1
    rtt_ms = world.call(client).describe()["rtt_ms"]
    assert isinstance(rtt_ms, float)
    assert 500 < rtt_ms < 800


def test_a_client_in_the_wrong_role_connects_once_it_was_told(world: World) -> None:
    """It minds the signed 487 and asks again in the other role (RFC 8445 section 7.2.5.1)."""
    client = world.client()
    confused = stun.parse_message(client.check_bytes(nominate=False))
    del confused.attributes["ICE-CONTROLLING"]
    for name in ("MESSAGE-INTEGRITY", "FINGERPRINT"):
        del confused.attributes[name]
    confused.attributes["ICE-CONTROLLED"] = 2**64 - 1
    confused.add_message_integrity(client.server_pwd.encode())
    world.up(client.address, bytes(confused))
    assert world.call(client).state is State.NEW
    assert world.counts.dropped == {"role_conflict": 1}
    world.socket.sent.clear()
    world.connect(client)
    assert works(world, client)


def test_a_client_that_asks_the_same_a_hundred_times_is_one_path(world: World) -> None:
    client = world.client()
    check = client.check_bytes()
    for _ in range(100):
        world.up(client.address, check)
    world.pump()
    assert client.responses == 100
    client.hello(world.now)
    world.pump()
    assert works(world, client)
    assert len(world.call(client)._reach) == 1
