"""Route tokens of this endpoint: every ufrag of ours leads relays back here. Pure."""

from collections import deque
from collections.abc import Callable

from relayctl.wire.address import Address, pack_host
from relayctl.wire.cluster import IPV4_PREFIX
from relayctl.wire.route_token import NONCE_SIZE, Key, Route, mint

NONCE_LIFE_S = 600.0  # within it no nonce comes twice


class MintingError(ValueError):
    """No token can be made for this endpoint; the message names the mend."""


class Minter:
    """`endpoint` has to lie in the cluster's /96, `random_bytes` has to be unpredictable."""

    def __init__(
        self,
        key: Key,
        cluster: int,
        endpoint: Address,
        random_bytes: Callable[[int], bytes],
        prefix: bytes = IPV4_PREFIX.network_address.packed[:12],
    ) -> None:
        host = pack_host(endpoint[0])
        if host[:12] != prefix:
            raise MintingError(
                f"{endpoint[0]} is outside the cluster's /96: set cluster_prefix to its network"
            )
        self._key = key
        self._cluster = cluster
        self._host = int.from_bytes(host[12:], "big")
        self._port = endpoint[1]
        self._random_bytes = random_bytes
        self._used: set[bytes] = set()
        self._order: deque[tuple[float, bytes]] = deque()

    def mint(self, now: float) -> str:
        """A token that this endpoint did not make within the last `NONCE_LIFE_S`."""
        while self._order and now - self._order[0][0] >= NONCE_LIFE_S:
            self._used.discard(self._order.popleft()[1])
        nonce = self._random_bytes(NONCE_SIZE)
        while nonce in self._used:
            nonce = self._random_bytes(NONCE_SIZE)
        self._used.add(nonce)
        self._order.append((now, nonce))
        return mint(self._key, Route(self._cluster, self._host, self._port, nonce))
