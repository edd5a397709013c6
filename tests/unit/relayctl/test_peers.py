import pytest

from relayctl.peers import BACK, Peer, Peers

VIP = ("203.0.113.20", 3478)
CLIENTS = [bytes([192, 0, 2, n, 156, 64]) for n in range(200)]


@pytest.fixture
def peers() -> Peers:
    third = Peer(3, "10.2.1.3", {VIP: 9})
    return Peers(
        [Peer(1, "10.2.1.1", {VIP: 9}), Peer(2, "10.2.1.2", {}), third], {7: (1, 2), 8: (1, 2, 3)}
    )


def test_facts(peers: Peers) -> None:
    assert (peers.at("10.2.1.2"), peers.at("10.2.1.9")) == (2, 0)
    assert (peers.vip(VIP), peers.vip(("203.0.113.20", 1)), peers.is_theirs(9)) == (9, None, True)
    assert (peers.serves(1, 9), peers.serves(2, 9)) == (True, False)
    assert (peers.cluster_of(2), peers.cluster_of(3), peers.cluster_of(9)) == (7, 8, None)


def test_a_client_keeps_its_peer_unless_that_one_goes(peers: Peers) -> None:
    before = {client: peers.choose(8, client, 1) for client in CLIENTS}
    assert set(before.values()) == {1, 2, 3}
    peers.take([1, 3])
    for client, was in before.items():
        found = peers.choose(8, client, 1)
        assert found == was if was != 2 else found in (1, 3)
    peers.take([1, 2, 3])
    assert {client: peers.choose(8, client, 1) for client in CLIENTS} == before


def test_nobody_lives(peers: Peers) -> None:
    peers.take([])
    assert (peers.choose(7, CLIENTS[0], 1), peers.holder(CLIENTS[0], 9)) == (0, 0)
    assert set(peers.places().values()) == {None}


def test_who_stands_in_reaches_the_same_clusters(peers: Peers) -> None:
    assert (peers.place(1), peers.place(BACK + 1)) == ("10.2.1.1", "10.2.1.1")
    peers.take([2, 3])
    assert (peers.place(1), peers.place(BACK + 1)) == ("10.2.1.2", "10.2.1.3")
    peers.take([3])  # which does not reach cluster 7
    assert (peers.place(1), peers.place(2)) == (None, None)
    peers.take([1])
    assert (peers.place(3), peers.place(BACK + 3)) == ("10.2.1.1", "10.2.1.1")
