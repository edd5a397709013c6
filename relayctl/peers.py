"""Peer relays: which clusters are reached by them, which VIPs are theirs, who stands in for whom.

Pure. A flow that goes by a peer stores the peer's id, its *slot*; where the slot leads is a table,
so a peer that dies is replaced by one write and no flow is touched. Slots from `BACK` on are for
the way back: a relay that carries a peer's clients sends answers to the peer that brought them.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from relayctl.wire.address import Address

IDS = range(1, 256)
BACK = 256  # first slot of the way back
SLOTS = 512

_PERSON = b"ferryline-peer"


@dataclass(frozen=True, slots=True)
class Peer:
    """`host` is its inner address; `vips`: ids of those that it serves and we do not."""

    id: int
    host: str
    vips: Mapping[Address, int]


class Peers:
    """Every peer, and who of them lives: all, until somebody says otherwise."""

    def __init__(
        self, peers: Iterable[Peer] = (), via: Mapping[int, tuple[int, ...]] | None = None
    ) -> None:
        """`via`: cluster id → ids of the peers that reach it."""
        self.via = dict(via or {})
        self._peers = {peer.id: peer for peer in peers}
        self._ids = {peer.host: peer.id for peer in self._peers.values()}
        self.public = {vip: public for peer in self for public, vip in peer.vips.items()}
        self._vips = {public: vip for vip, public in self.public.items()}
        self._holders = {
            vip: tuple(peer.id for peer in self if vip in peer.vips.values()) for vip in self.public
        }
        self.live = frozenset(self._peers)
        self._places: dict[int, str | None] = {}
        self._settle()

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers.values())

    def __len__(self) -> int:
        return len(self._peers)

    def take(self, live: Iterable[int]) -> None:
        """Only these live now."""
        self.live = frozenset(live)
        self._settle()

    def at(self, host: str) -> int:
        """Id of the peer with this address; 0 if there is none."""
        return self._ids.get(host, 0)

    def vip(self, public: Address) -> int | None:
        """Id of a VIP that peers serve and we do not."""
        return self._vips.get(public)

    def is_theirs(self, vip: int) -> bool:
        return vip in self.public

    def serves(self, peer: int, vip: int) -> bool:
        return peer in self._holders.get(vip, ())

    def choose(self, cluster: int, client: bytes, vip: int) -> int:
        """The live peer that carries a packed client's calls to a cluster; 0 without one."""
        return self._rendezvous(self.via.get(cluster, ()), client, vip)

    def holder(self, client: bytes, vip: int) -> int:
        """A live relay of one of their VIPs, for a client whose own one is unknown or dead."""
        return self._rendezvous(self._holders.get(vip, ()), client, vip)

    def cluster_of(self, peer: int) -> int | None:
        """The first cluster that this peer reaches."""
        return next((cluster for cluster, ids in self.via.items() if peer in ids), None)

    def place(self, slot: int) -> str | None:
        """Where a slot leads now; None while nobody lives who could take its packets."""
        return self._places.get(slot)

    def places(self) -> Mapping[int, str | None]:
        """Every slot in use."""
        return self._places

    def _settle(self) -> None:
        self._places = {}
        for id in self._peers:
            self._places[id] = self._host(self._stand_in(id, list(self.via.values())))
            self._places[BACK + id] = self._host(self._stand_in(id, list(self._holders.values())))

    def _host(self, id: int) -> str | None:
        return self._peers[id].host if id else None

    def _stand_in(self, id: int, groups: list[tuple[int, ...]]) -> int:
        """The peer itself if it lives, else the next live one of all groups that it is in."""
        if id in self.live:
            return id
        mine = [group for group in groups if id in group]
        if not mine:
            return 0
        order = mine[0][mine[0].index(id) + 1 :] + mine[0]
        fits = (each for each in order if each in self.live and all(each in g for g in mine))
        return next(fits, 0)

    def _rendezvous(self, ids: Iterable[int], client: bytes, vip: int) -> int:
        """Every relay of a site finds the same one, and few clients move when the set changes."""
        live = [id for id in ids if id in self.live]
        return max(live, key=lambda id: _weight(client, vip, id), default=0)


def _weight(client: bytes, vip: int, id: int) -> bytes:
    message = client + vip.to_bytes(2, "big") + id.to_bytes(1, "big")
    return hashlib.blake2b(message, digest_size=8, person=_PERSON).digest()
