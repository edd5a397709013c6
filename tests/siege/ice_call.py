"""A call that gets as far as ICE: enough to own a route token, and to be checked."""

import contextlib
import secrets
import select
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from urllib.parse import urljoin

from relayctl.wire.address import Address
from tests.clients import sdp
from tests.clients.ice import Agent, Credentials
from tests.lab.node import Node

_RTO_S = 0.05
_LOOK_S = 0.0005  # between two looks at what is waited for
_FINGERPRINT = "sha-256 " + ":".join(["AB"] * 32)  # nobody gets so far as to compare it
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class IceCall:
    """Offered to the signaling at `url` in the name of the socket's address."""

    def __init__(self, node: Node, url: str, address: Address) -> None:
        self._node = node
        self._agent = Agent(secrets.token_bytes, rto_s=_RTO_S)
        ice = Credentials(secrets.token_hex(4), secrets.token_hex(12))
        offer = sdp.offer(sdp.Local(ice, _FINGERPRINT, secrets.randbits(32), address, False))
        request = urllib.request.Request(
            url, offer.encode(), {"Content-Type": "application/sdp"}, method="POST"
        )
        answer, location = node.call(lambda: _ask(request))
        self._location = urljoin(url, location)
        self._ice, self._answer = ice, sdp.read_answer(answer)

    @property
    def token(self) -> bytes:
        return self._answer.ice.ufrag.encode()

    def request(self) -> bytes:
        """A new check as this call's client sends it, signed and all."""
        self._begin(time.monotonic())
        ((datagram, _),) = self._agent.out
        self._agent.out.clear()
        return datagram

    def run(self, sock: socket.socket, until: Callable[[], bool], patience_s: float) -> float:
        """Do ICE until something has happened; seconds since the first check, or infinity."""
        began = time.monotonic()
        self._begin(began)
        while time.monotonic() < began + patience_s:
            for datagram, target in self._agent.out:
                sock.sendto(datagram, target)
            self._agent.out.clear()
            if until():
                return time.monotonic() - began
            if select.select([sock], [], [], _LOOK_S)[0]:
                self._agent.receive(*sock.recvfrom(2048), time.monotonic())
            self._agent.timer(time.monotonic())
        return float("inf")

    def hang_up(self) -> None:
        """The call may have ended by itself: nobody who does no more than ICE stays for long."""
        request = urllib.request.Request(self._location, method="DELETE")
        with contextlib.suppress(urllib.error.HTTPError):
            self._node.call(lambda: _ask(request))

    def _begin(self, now: float) -> None:
        self._agent.start(self._ice, self._answer.ice, self._answer.address, now)


def _ask(request: urllib.request.Request) -> tuple[str, str]:
    """Body and location of the answer."""
    with _DIRECT.open(request, timeout=5) as response:
        return response.read().decode(), response.headers.get("Location", "")
