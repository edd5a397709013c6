"""Sends what decisions order, each by its socket."""

from collections.abc import Iterable, Mapping

from relayctl.packet.actions import Send, SendInner, SendTransparent
from relayctl.packet.raw_datagram import build
from relayctl.packet.sockets import PacketSocket, RawSocket
from relayctl.wire import spp
from relayctl.wire.address import Address, is_v6
from relayctl.wire.spp import Header


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
        self._public = public

    def send(self, order: Send) -> bool:
        """False when the kernel refuses it, or there is no such socket any more."""
        if isinstance(order, SendInner):
            sock = self._inner.get((is_v6(order.endpoint[0]), order.sport))
            header = spp.encode(Header(order.client, self._public[order.vip]))
            return sock is not None and sock.send(header + order.payload, order.endpoint)
        if isinstance(order, SendTransparent):
            raw = self._raw.get(is_v6(order.client[0]))
            if raw is None or is_v6(order.endpoint[0]) != raw.v6:
                return False
            datagram = build(order.client, order.endpoint, order.payload)
            return raw.send(datagram, order.endpoint[0])
        return self._vips[order.vip].send(order.payload, order.client)
