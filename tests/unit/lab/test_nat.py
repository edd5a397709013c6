from tests.lab.nat import NatTable

ALICE, BOB = ("10.1.0.2", 5000), ("10.1.0.2", 5001)


def test_invisible_until_the_first_move() -> None:
    nat = NatTable()
    assert nat.inbound(*ALICE) is None
    assert nat.outbound(ALICE) == 5000
    assert nat.inbound(*ALICE) == ALICE


def test_a_move_ends_the_old_mapping() -> None:
    nat = NatTable()
    nat.outbound(ALICE)
    assert nat.move() == 1
    first = nat.outbound(ALICE)
    assert first != 5000
    assert nat.inbound(*ALICE) is None
    assert nat.inbound("10.1.0.2", first) == ALICE
    nat.move()
    assert nat.outbound(ALICE) != first
    assert nat.inbound("10.1.0.2", first) is None


def test_one_client_moves_alone() -> None:
    nat = NatTable()
    nat.outbound(ALICE)
    nat.outbound(BOB)
    assert nat.move(BOB) == 1
    assert nat.outbound(ALICE) == 5000
    assert nat.outbound(BOB) != 5001


def test_nothing_to_move() -> None:
    assert NatTable().move() == 0
    assert NatTable().move(ALICE) == 0


def test_public_ports_never_collide() -> None:
    nat = NatTable()
    nat.outbound(ALICE)
    nat.move()
    public = nat.outbound(ALICE)
    newcomer = ("10.1.0.2", public)  # its own port is taken as a public one
    assert nat.outbound(newcomer) != public
    assert nat.inbound("10.1.0.2", public) == ALICE
    assert nat.inbound("10.1.0.2", nat.outbound(newcomer)) == newcomer


def test_ports_come_round_again() -> None:
    nat = NatTable()
    nat.outbound(ALICE)
    seen = set()
    for _ in range(30_000):
        nat.move()
        seen.add(nat.outbound(ALICE))
    assert min(seen) == 40_000
    assert max(seen) == 60_000
