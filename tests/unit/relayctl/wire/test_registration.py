import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.wire.registration import (
    MAX_SIZE,
    Registration,
    RegistrationError,
    key_of,
    parse,
    parse_key,
)

GOOD = Registration(7, 3, 40, 1.5, False, "1.2.3")

BAD: dict[str, list[object]] = {
    "cluster": [-1, 65536, "7", True, None, 7.0],
    "calls": [-1, 10**9, 1e999, "3", True],
    "capacity": [0, -5, 10**30, 0.5],
    "lateness_ms": [-1, float("nan"), float("inf"), 1e300, "1", True, 10**400],
    "draining": [0, "false", None],
    "version": [1, None, "x" * 65],
}


def changed(**values: object) -> bytes:
    return json.dumps(json.loads(GOOD.render()) | values).encode()


def test_there_and_back() -> None:
    assert parse(GOOD.render().encode()) == GOOD
    assert json.loads(GOOD.render()) == {
        "cluster": 7,
        "calls": 3,
        "capacity": 40,
        "lateness_ms": 1.5,
        "draining": False,
        "version": "1.2.3",
    }
    assert GOOD.load == 3 / 40


def test_more_fields_than_ours_are_left_alone() -> None:
    assert parse(changed(zone="a")) == GOOD


def test_whole_milliseconds() -> None:
    assert parse(changed(lateness_ms=2)).lateness_ms == 2.0


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff",
        b"[" * MAX_SIZE,
        GOOD.render().encode() + b" " * MAX_SIZE,
        b'{"cluster": 7}',
        *(changed(**{name: value}) for name, values in BAD.items() for value in values),
    ],
)
def test_what_is_no_registration(text: bytes) -> None:
    with pytest.raises(RegistrationError):
        parse(text)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_nothing_else_is_raised(text: bytes) -> None:
    for read in (parse, parse_key):
        with contextlib.suppress(RegistrationError):
            read(text)


@pytest.mark.parametrize("endpoint", [("10.2.0.2", 5000), ("fd00::2", 5001)])
def test_keys(endpoint: tuple[str, int]) -> None:
    assert parse_key(key_of(endpoint)) == endpoint
    assert parse_key(key_of(endpoint).encode()) == endpoint


def test_the_key_of_the_contract() -> None:
    assert key_of(("10.2.0.2", 5000)) == "transceiver:{10.2.0.2:5000}"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "transceiver:",
        "transceiver:10.2.0.2:5000",
        "transceiver:{10.2.0.2:05000}",  # one endpoint has one key
        "transceiver:{10.2.0.2:5000}}",
        "transceiver:{10.2.0.2}",
        "transceiver:{[fd00:0::2]:5000}",
        "transceiver:{[::ffff:10.2.0.2]:5000}",
        "x" * 1000,
    ],
)
def test_what_is_no_key(key: str) -> None:
    with pytest.raises(RegistrationError):
        parse_key(key.encode())
