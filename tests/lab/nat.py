"""A NAT's table: client address to mapped port, and mappings that change on command.

Pure. Endpoint-independent mapping, address kept, one public port per client address (RFC 4787
section 4.1). Until its first move a client keeps its own port, so an idle NAT is invisible.
"""

from relayctl.wire.address import Address

_FIRST_PORT, _LAST_PORT = 40000, 60000


class NatTable:
    def __init__(self) -> None:
        self._mapped: dict[Address, int] = {}  # client -> public port
        self._clients: dict[Address, Address] = {}  # (host, public port) -> client
        self._next = _FIRST_PORT

    def outbound(self, client: Address) -> int:
        """The public port of `client`; makes its mapping if there is none."""
        port = self._mapped.get(client)
        return self._map(client, client[1]) if port is None else port

    def inbound(self, host: str, port: int) -> Address | None:
        """The client behind a public address, or None: no mapping, or one of the past."""
        return self._clients.get((host, port))

    def move(self, client: Address | None = None) -> int:
        """Give `client`, or every one, a new public port; the old ones lead nowhere from now on.

        Returns how many moved. A client that never sent anything has nothing to move.
        """
        moving = [client] if client in self._mapped else []
        for one in list(self._mapped) if client is None else moving:
            del self._clients[one[0], self._mapped[one]]
            self._map(one, self._free_port(one[0]))
        return len(self._mapped) if client is None else len(moving)

    def _map(self, client: Address, port: int) -> int:
        if (client[0], port) in self._clients:  # a moved client has that port by now
            port = self._free_port(client[0])
        self._mapped[client] = port
        self._clients[client[0], port] = client
        return port

    def _free_port(self, host: str) -> int:
        while True:
            port = self._next
            self._next = port + 1 if port < _LAST_PORT else _FIRST_PORT
            if (host, port) not in self._clients and (host, port) not in self._mapped:
                return port
