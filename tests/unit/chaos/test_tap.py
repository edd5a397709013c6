"""The tap hears what two sockets say to each other on a loopback interface of its own."""

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relayctl.wire import spp
from tests.chaos import tap
from tests.chaos.tap import Tap
from tests.lab import namespace
from tests.lab.node import Node
from tests.lab.program import Programs

NAME = "ch-tap"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    if reason := namespace.unavailable():
        pytest.skip(reason)
    namespace.create(NAME)
    try:
        node = Node(NAME, Programs(tmp_path))
        node.set_link("lo", up=True)
        yield node
    finally:
        namespace.remove(NAME)


def rtp(ssrc: int, number: int, kind: int = 111) -> bytes:
    return struct.pack("!BBHII", 0x80, kind, number, 0, ssrc) + b"voice"


def until(happened: object) -> None:
    deadline = time.monotonic() + 5
    while not happened() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.01)


def test_rtp_is_seen_by_source_and_number(node: Node) -> None:
    with Tap(node, [], "lo") as heard, node.udp("127.0.0.1") as one, node.udp("127.0.0.1") as two:
        before = time.monotonic()
        header = spp.encode(spp.Header(("127.0.0.1", 1), ("127.0.0.1", 2)))
        for payload in (rtp(7, 65535), rtp(7, 200, kind=200), b"\x00" * 20, header + rtp(7, 0)):
            one.sendto(payload, two.getsockname())
        one.sendto(rtp(8, 1), two.getsockname())
        until(lambda: len(heard.seen("client", False, 8).times))
        after = time.monotonic()
        found = heard.seen("client", True, 7)
        assert found.numbers.tolist() == [65535, 0]
        assert before <= found.times[0] <= found.times[1] <= after
        assert heard.seen("client", False, 7).numbers.tolist() == [65535, 0]
        assert not len(heard.seen("transceiver", False, 7).times)
        heard.forget()
        assert not len(heard.seen("client", True, 7).times)


def test_both_ways_of_a_socket_are_a_pair(node: Node) -> None:
    with Tap(node, [], "lo") as heard, node.udp("127.0.0.1") as one, node.udp("127.0.0.1") as two:
        one.sendto(rtp(1, 1), two.getsockname())
        two.sendto(rtp(2, 1), one.getsockname())
        until(lambda: 1 in heard.pairs())
        assert heard.pairs()[1] == 2


def test_a_stamp_of_a_clock_that_was_stepped_is_not_believed() -> None:
    for wrong_s in (-3600, 3600):
        stamp = struct.pack("@qq", int(time.time()) + wrong_s, 0)
        kind = [(socket.SOL_SOCKET, tap._SO_TIMESTAMPNS, stamp)]
        assert abs(tap._monotonic(kind) - time.monotonic()) < 1
