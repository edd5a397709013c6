"""Paths of one call between its agent and the mux; whole calls are in `test_call.py`."""

import os

import pytest

from tests.unit.transceiver.harness import OTHER_RELAY, RELAY, VIP, Client, World
from transceiver import ice
from transceiver.reach import News, Reach

CREDENTIALS = ice.Credentials("a" * 24, "serverpasswordserverpw", "abcd", "clientpasswordclientpw")


class Bench:
    """A reach with a mux, and its client."""

    def __init__(self) -> None:
        self.world = World()
        self.told: list[News] = []
        owner = self.world.client()
        self.call = self.world.call(owner)
        agent = ice.Agent(CREDENTIALS, os.urandom)
        self.reach = Reach(
            self.world.mux, self.call, agent, lambda news, now: self.told.append(news)
        )
        self.client = Client(("198.51.100.7", 40000))
        self.client.token, self.client.server_pwd = CREDENTIALS.ufrag, CREDENTIALS.pwd
        self.path = self.world.frame(self.client.address, b"")

    def stun(self, payload: bytes, via: tuple[str, int] = RELAY) -> str | None:
        return self.reach.stun(payload, self.path, via, self.world.now)

    def prove(self) -> None:
        self.client.check()
        self.stun(self.client.outbox.pop())
        for datagram, _ in self.sent():
            self.client.receive(datagram[38:], self.world.now)
        self.stun(self.client.outbox.pop())

    def sent(self) -> list[tuple[bytes, tuple[str, int]]]:
        sent, self.world.socket.sent = self.world.socket.sent, []
        return sent


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_nobody_is_reached_before_a_path_is_proven(bench: Bench) -> None:
    bench.reach.send(b"x")
    bench.client.check()
    bench.stun(bench.client.outbox.pop())
    assert len(bench.sent()) == 2  # the answer, and a check of ours
    bench.reach.send(b"x")
    assert bench.sent() == []
    assert (bench.reach.client, bench.reach.vip) == (None, None)


def test_a_proven_path_is_owned_told_and_sent_to(bench: Bench) -> None:
    bench.prove()
    assert bench.told == [ice.Selected(bench.path)]
    assert bench.world.mux.table.owner(bench.path) is bench.call
    bench.reach.send(b"x")
    assert bench.sent() == [(bench.path + b"x", RELAY)]
    assert (bench.reach.client, bench.reach.vip) == (bench.client.address, VIP)


def test_only_what_is_authentic_changes_the_relay(bench: Bench) -> None:
    bench.prove()
    assert bench.stun(bench.client.check_bytes(pwd="wrongpasswordwrongpassw"), OTHER_RELAY)
    bench.reach.send(b"x")
    assert bench.sent()[-1][1] == RELAY
    assert not bench.reach.authentic(bench.path, OTHER_RELAY, bench.world.now, newest=True)
    bench.reach.send(b"x")
    assert bench.sent()[-1][1] == OTHER_RELAY


def test_an_authentic_packet_from_elsewhere_has_consequences(bench: Bench) -> None:
    bench.prove()
    elsewhere = bench.world.frame(("198.51.100.7", 40001), b"")
    assert bench.reach.authentic(elsewhere, RELAY, bench.world.now, newest=True)
    ((check, _),) = bench.sent()
    assert check.startswith(elsewhere)


def test_a_lost_path_is_given_back(bench: Bench) -> None:
    bench.prove()
    bench.reach.lost(bench.path, bench.world.now)
    assert bench.world.mux.table.owner(bench.path) is None
    assert len(bench.reach) == 0
    bench.reach.send(b"x")
    assert bench.sent() == []


def test_a_closed_reach_is_silent(bench: Bench) -> None:
    bench.prove()
    bench.reach.close()
    bench.reach.send(b"x")
    assert not bench.reach.authentic(bench.path, RELAY, bench.world.now, newest=True)
    bench.reach.timer(bench.world.now + 100)
    assert bench.told == [ice.Selected(bench.path)]
    assert bench.sent() == []
