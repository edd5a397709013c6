"""Sends what decisions order, each by its socket."""

from collections.abc import Iterable, Mapping

from relayctl.packet.actions import Send, SendInner, SendTransparent
from relayctl.packet.raw_datagram import build
from relayctl.packet.sockets import PacketSocket, RawSocket
from relayctl.wire import spp
from relayctl.wire.address import Address, is_v6, pack


class Outlets:
    def __init__(
        self,
        sockets: Iterable[PacketSocket],
        raw: Iterable[RawSocket],
        public: Mapping[int, Address],
    ) -> None:
        """`raw`: one of each family, in transparent mode. `public`: addresses of VIPs by id."""
        self._vips: dict[int, PacketSocket] = {}
        self._inner: dict[tuple[bool, int], PacketSocket] = {}
        for sock in sockets:
            if sock.vip:
                self._vips[sock.vip] = sock
            else:
                self._inner[sock.v6, sock.sport] = sock
        self._raw = {sock.v6: sock for sock in raw}
        self._public = {vip: pack(address) for vip, address in public.items()}

    def send_inner(self, endpoint: Address, sport: int, datagram: bytes) -> bool:
        """Send what begins with an SPP header."""
        sock = self._inner.get((is_v6(endpoint[0]), sport))
        return sock is not None and sock.send(datagram, endpoint)

    def send(self, order: Send) -> bool:
        """False when the kernel refuses it, or there is no such socket any more."""
        if isinstance(order, SendInner):
            header = spp.encode_packed(order.key.packed_client, self._public[order.key.vip])
            return self.send_inner(order.endpoint, order.sport, header + order.payload)
        if isinstance(order, SendTransparent):
            raw = self._raw.get(order.key.is_v6)
            if raw is None or is_v6(order.endpoint[0]) != raw.v6:
                return False
            datagram = build(order.key.client, order.endpoint, order.payload)
            return raw.send(datagram, order.endpoint[0])
        return self._vips[order.key.vip].send(order.payload, order.key.client)
