"""The inner leg: from a datagram of the media socket to path and payload, and back. Pure.

`spp`: the 38 SPP header bytes are the path, that is client and VIP; whichever relay brings it is
the `via`. `plain`: the source address is the path and the client. Which of the two it is stands in
the configuration: nothing is guessed from the bytes.
"""

import enum
import functools
import ipaddress
from collections.abc import Hashable, Iterable
from typing import Protocol

from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.cluster import Network

MAX_SOURCES = 4096  # remembered verdicts on sources


class Reject(enum.StrEnum):
    """Why a datagram of the inner leg has no path."""

    NOT_A_RELAY = "not_a_relay"
    NOT_SPP = "not_spp"
    EMPTY = "empty"


class FramingError(ValueError):
    def __init__(self, reason: Reject, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class Framing(Protocol):
    def open(self, datagram: bytes, source: Address) -> tuple[Hashable, bytes]:
        """Path and payload. Raises `FramingError`."""

    def seal(self, path: Hashable, payload: bytes) -> bytes:
        """The datagram that brings `payload` to the client of `path`."""

    def client(self, path: Hashable) -> Address:
        """Where the client of `path` is, as it sees itself from outside."""

    def vip(self, path: Hashable) -> Address | None:
        """The public VIP that the client of `path` sends to; None if the framing does not tell."""


class SppFraming:
    """Datagrams of relays in `relay_networks`, each with an SPP header."""

    def __init__(self, relay_networks: Iterable[Network]) -> None:
        networks = tuple(relay_networks)

        @functools.lru_cache(maxsize=MAX_SOURCES)
        def is_relay(host: str) -> bool:
            address = ipaddress.ip_address(host)
            return any(address in network for network in networks)

        self._is_relay = is_relay

    def open(self, datagram: bytes, source: Address) -> tuple[Hashable, bytes]:
        if not self._is_relay(source[0]):
            raise FramingError(Reject.NOT_A_RELAY, f"{source[0]} is in no relay network")
        try:
            return spp.split(datagram)
        except spp.SppError as error:
            raise FramingError(Reject.NOT_SPP, str(error)) from None

    def seal(self, path: Hashable, payload: bytes) -> bytes:
        assert isinstance(path, bytes)
        return path + payload

    def client(self, path: Hashable) -> Address:
        assert isinstance(path, bytes)
        return spp.decode(path).client

    def vip(self, path: Hashable) -> Address | None:
        assert isinstance(path, bytes)
        return spp.decode(path).proxy


class PlainFraming:
    """Datagrams of the clients themselves: transparent relays, tests."""

    def open(self, datagram: bytes, source: Address) -> tuple[Hashable, bytes]:
        if not datagram:
            raise FramingError(Reject.EMPTY, "no payload")
        return source, datagram

    def seal(self, path: Hashable, payload: bytes) -> bytes:
        return payload

    def client(self, path: Hashable) -> Address:
        assert isinstance(path, tuple)
        return path

    def vip(self, path: Hashable) -> Address | None:
        return None
