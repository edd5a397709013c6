import socket
import struct
import time
from typing import Any, ClassVar

import pytest

from transceiver.media_socket import RECEIVE_BUFFER, SEND_BUFFER, open_socket, waited


class Buffers(socket.socket):
    """A socket that may not have more than the system allows, unless `privileged`."""

    asked: ClassVar[list[tuple[int, int]]] = []
    privileged = False

    def setsockopt(self, level: int, option: int, value: Any, *more: Any) -> None:
        if option in (32, 33) and not self.privileged:
            raise PermissionError
        self.asked.append((option, value))


@pytest.mark.parametrize(
    ("privileged", "options"), [(True, (33, 32)), (False, (socket.SO_RCVBUF, socket.SO_SNDBUF))]
)
def test_buffers_hold_a_burst_both_ways(
    privileged: bool, options: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Buffers, "privileged", privileged)
    monkeypatch.setattr(Buffers, "asked", [])
    monkeypatch.setattr("transceiver.media_socket.socket.socket", Buffers)
    open_socket(("127.0.0.1", 0)).close()
    assert Buffers.asked[-2:] == list(zip(options, (RECEIVE_BUFFER, SEND_BUFFER), strict=True))


@pytest.mark.parametrize(("ahead_s", "expected"), [(0.25, 0.25), (-3600, 0.0), (3600, 0.0)])
def test_a_stepped_clock_makes_nothing_late(
    ahead_s: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000 + ahead_s)
    stamp = struct.pack("@ll", 1_700_000_000, 0)
    assert waited([(socket.SOL_SOCKET, 35, stamp)]) == expected
