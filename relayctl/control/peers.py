"""Health of peer relays: asked once a second, told to the packet process, which re-points slots.

A peer is out after three misses in a row and back with the first answer. A relay that drains or
has nothing to reach says no to /readyz, and so loses its part of the calls before it goes.
"""

import asyncio
import logging
from collections.abc import Callable

from relayctl.config import PeerSection
from relayctl.messages import Message, PeersLive
from relayctl.wire.address import Address, render

INTERVAL_S = 1.0
PATIENCE_S = 0.9
MISSES = 3
_LINE = 1024  # bytes of an answer that are read at most

log = logging.getLogger(__name__)


class PeerHealth:
    """Who lives: everybody, until somebody missed three times."""

    def __init__(self, ids: list[int]) -> None:
        self._misses = dict.fromkeys(ids, 0)

    @property
    def live(self) -> tuple[int, ...]:
        return tuple(id for id, misses in self._misses.items() if misses < MISSES)

    def see(self, id: int, is_ready: bool) -> bool:
        """Take an answer in. True when the peer went out or came back."""
        before = self._misses[id]
        self._misses[id] = 0 if is_ready else min(before + 1, MISSES)
        return (before < MISSES) != (self._misses[id] < MISSES)


class PeerWatch:
    """Asks all peers, and tells who lives."""

    def __init__(self, peers: tuple[PeerSection, ...], send: Callable[[Message], bool]) -> None:
        self._peers = peers
        self._send = send
        self.health = PeerHealth([peer.id for peer in peers])
        self.changes = 0

    async def run(self) -> None:
        """Ask until cancelled. Everything is told each time: messages may get lost."""
        while True:
            answers = await asyncio.gather(*(is_ready(peer.admin) for peer in self._peers))
            for peer, answer in zip(self._peers, answers, strict=True):
                if self.health.see(peer.id, answer):
                    self.changes += 1
                    log.warning("peer %d is %s", peer.id, "back" if answer else "out")
            self._send(PeersLive(self.health.live))
            await asyncio.sleep(INTERVAL_S)

    def records(self) -> list[dict[str, object]]:
        """For people: each peer, where it is and whether it lives."""
        return [
            {"id": peer.id, "address": peer.address, "live": peer.id in self.health.live}
            for peer in self._peers
        ]


async def is_ready(admin: Address) -> bool:
    """Whether GET /readyz says 200 within a second."""
    request = f"GET /readyz HTTP/1.1\r\nHost: {render(admin)}\r\nConnection: close\r\n\r\n"
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(*admin, limit=_LINE)
            try:
                writer.write(request.encode())
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, ValueError):  # a timeout is an OSError; ValueError: an endless line
        return False
    return status.split(b" ")[1:2] == [b"200"]
