import socket
from typing import Any, ClassVar

import pytest

from transceiver.media_socket import RECEIVE_BUFFER, SEND_BUFFER, open_socket


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
