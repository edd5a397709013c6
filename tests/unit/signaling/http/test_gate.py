import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from signaling.http.gate import Gate, Visitor

A, B = "192.0.2.1", "192.0.2.2"


def enter(gate: Gate, host: str, gone: list[str] | None = None, name: str = "") -> Visitor | None:
    return gate.enter(host, lambda: (gone if gone is not None else []).append(name))


def test_so_many_of_one_address() -> None:
    gate = Gate(100, 2)
    first = enter(gate, A)
    assert first
    assert enter(gate, A)
    assert enter(gate, A) is None
    assert enter(gate, B)
    gate.leave(first)
    gate.leave(first)  # once is enough
    assert enter(gate, A)
    assert enter(gate, A) is None


def test_a_site_of_ipv6_is_one_address() -> None:
    gate = Gate(100, 1)
    assert enter(gate, "2001:db8::1")
    assert enter(gate, "2001:db8::2") is None
    assert enter(gate, "2001:db8:0:1::1")


def test_proxies_of_ours_come_for_many() -> None:
    gate = Gate(100, 1, [ipaddress.ip_network("192.0.2.1/32")])
    assert all(enter(gate, A) for _ in range(10))
    assert enter(gate, B)
    assert enter(gate, B) is None
    assert enter(gate, "") is not None


def test_no_bound_for_an_address() -> None:
    gate = Gate(10, 0)
    assert all(enter(gate, A) for _ in range(10))


def test_who_waits_longest_has_to_go() -> None:
    gate, gone = Gate(3, 0), list[str]()
    a, b, c = (enter(gate, A, gone, name) for name in "abc")
    assert a
    assert b
    assert c
    gate.works(b)
    gate.works(a)
    gate.waits(a)  # after c
    for name, expected in (("d", "c"), ("e", "a"), ("f", "d")):
        assert enter(gate, B, gone, name)
        assert gone[-1] == expected
        assert len(gate) == 3


def test_nobody_goes_whose_request_is_under_way() -> None:
    gate, gone = Gate(2, 0), list[str]()
    for name in "ab":
        visitor = enter(gate, A, gone, name)
        assert visitor
        gate.works(visitor)
    assert enter(gate, B, gone) is None
    assert gone == []


def test_who_was_turned_out_does_not_wait_again() -> None:
    gate, gone = Gate(1, 0), list[str]()
    first = enter(gate, A, gone, "first")
    assert first
    assert enter(gate, B, gone, "second")
    gate.waits(first)
    assert enter(gate, B, gone, "third")
    assert gone == ["first", "second"]


@given(
    st.lists(st.tuples(st.sampled_from("ewxl"), st.integers(0, 4), st.integers(0, 20)), max_size=80)
)
def test_the_books_balance(steps: list[tuple[str, int, int]]) -> None:
    gate, inside = Gate(6, 3), list[Visitor]()
    for step, host, number in steps:
        if step == "e":
            visitor = gate.enter(f"192.0.2.{host}", lambda: None)
            inside += [visitor] if visitor else []
        elif inside:
            act = {"w": gate.waits, "x": gate.works, "l": gate.leave}[step]
            act(inside[number % len(inside)])
        assert len(gate) <= 6
    for visitor in inside:
        gate.leave(visitor)
    assert len(gate) == 0
    for host in range(2):
        assert all(gate.enter(f"192.0.2.{host}", lambda: None) for _ in range(3))
