"""The packet process's sockets: opened, read and counted.

The control process opens them and keeps them open, and the packet process inherits them. So a port
is bound while there is no packet process, and the kernel answers nobody in its stead.

Not here: what a datagram means (`decide`) and when to read (`process`).
"""

import contextlib
import errno
import socket
import struct
import time
from collections.abc import Sequence

from relayctl.config import RelayConfig
from relayctl.packet.inbox import SO_TIMESTAMPNS, Datagram, Inbox
from relayctl.wire.address import Address, is_v6, render

RECEIVE_BUFFER = 32 << 20  # bytes: the default loses four of five packets of a burst of 1,000
SEND_BUFFER = 4 << 20
BIND_PATIENCE_S = 2.0  # a killed predecessor needs a moment to let go of its sockets

# linux/asm-generic/socket.h, linux/in.h and linux/in6.h, where Python has no name for them
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_SO_MEMINFO = 55
_MEMINFO_DROPS = 8  # index into the array of u32 that SO_MEMINFO gives
_IP_PKTINFO = 8
_IP_MTU_DISCOVER = 10
_IPV6_MTU_DISCOVER = 23
_IPV6_HDRINCL = 36
_PMTUDISC_DONT = 0  # what is larger than a link is fragmented, and no ICMP message makes it smaller


class SocketError(Exception):
    """A socket cannot be opened; the message names the address and the mend."""


class PacketSocket:
    """One bound UDP socket. `vip` is the id of a VIP, or 0 for the inner port `sport`."""

    def __init__(
        self,
        local: Address,
        *,
        vip: int = 0,
        sport: int = 0,
        interfaces: bool = False,
        inherited: int | None = None,
    ) -> None:
        """Binds to `local`, or takes over the file descriptor `inherited`, which is bound to it.
        `interfaces` asks the kernel by which one each datagram came."""
        self.vip = vip
        self.sport = sport
        self.v6 = is_v6(local[0])
        self._interfaces = interfaces
        if inherited is not None:
            self._socket = socket.socket(fileno=inherited)
            self._socket.setblocking(False)
            return
        self._socket = _open(self.v6, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if self.v6:
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._socket.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_DONT)
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, interfaces)
        else:
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_DONT)
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, interfaces)
        _bind(self._socket, local)

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self, inbox: Inbox) -> list[Datagram]:
        """The datagrams that wait, a batch at most."""
        return inbox.receive(self.fileno(), v6=self.v6, interfaces=self._interfaces)

    def send(self, payload: bytes, to: Address) -> bool:
        """False when the kernel refuses it: no route, a full buffer, a firewall."""
        try:
            self._socket.sendto(payload, to)
        except OSError:
            return False
        return True

    def drops(self) -> int:
        """Datagrams that the kernel dropped since the socket is full or their checksum wrong.

        The counter that SO_RXQ_OVFL attaches to the next datagram, readable without one.
        """
        info = self._socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 36)
        return struct.unpack_from("=I", info, 4 * _MEMINFO_DROPS)[0] if len(info) >= 36 else 0

    def close(self) -> None:
        self._socket.close()


def open_sockets(config: RelayConfig, inherited: Sequence[int] = ()) -> list[PacketSocket]:
    """One for each VIP, then one for each inner address and port. `inherited`: the file descriptors
    of an earlier call with this configuration, in its order. Raises `SocketError`."""
    by_interface = config.datapath == "socket" and bool(config.interfaces)
    vips = [(vip.local, vip.id, 0) for vip in config.vips]
    inner = [
        ((host, port), 0, port)
        for host in config.inner_addresses
        for port in config.inner_port_range
        if config.inner == "spp"
    ]
    places = [*vips, *inner]
    fds: Sequence[int | None] = inherited or [None] * len(places)
    return [
        PacketSocket(local, vip=vip, sport=sport, interfaces=by_interface, inherited=fd)
        for (local, vip, sport), fd in zip(places, fds, strict=True)
    ]


class RawSocket:
    """Sends IP datagrams of one family as they are: in transparent mode, in a client's name."""

    def __init__(self, v6: bool) -> None:
        self.v6 = v6
        try:
            self._socket = _open(v6, socket.SOCK_RAW, socket.IPPROTO_RAW)
        except PermissionError:
            raise SocketError(
                "inner = 'transparent' sends in the clients' names: it needs CAP_NET_RAW"
            ) from None
        if v6:
            self._socket.setsockopt(socket.IPPROTO_IPV6, _IPV6_HDRINCL, 1)
        else:
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)

    def send(self, datagram: bytes, host: str) -> bool:
        """False when the kernel refuses it: no route, a full buffer, a firewall."""
        try:
            self._socket.sendto(datagram, (host, 0))
        except OSError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()


def _open(v6: bool, kind: socket.SocketKind, protocol: int = 0) -> socket.socket:
    try:
        sock = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, kind, protocol)
    except OSError as error:
        if error.errno != errno.EAFNOSUPPORT:
            raise
        raise SocketError("the kernel has no IPv6; take the IPv6 addresses out") from None
    sock.setblocking(False)
    _set_buffers(sock)
    return sock


def _set_buffers(sock: socket.socket) -> None:
    for forced, plain, size in (
        (_SO_RCVBUFFORCE, socket.SO_RCVBUF, RECEIVE_BUFFER),
        (_SO_SNDBUFFORCE, socket.SO_SNDBUF, SEND_BUFFER),
    ):
        try:
            sock.setsockopt(socket.SOL_SOCKET, forced, size)
        except PermissionError:  # without CAP_NET_ADMIN up to net.core.rmem_max
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, plain, size)


def _bind(sock: socket.socket, local: Address) -> None:
    deadline = time.monotonic() + BIND_PATIENCE_S
    while True:
        try:
            return sock.bind(local)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            sock.close()
            raise SocketError(f"cannot bind {render(local)}: {_mend(error, local)}") from None


def _mend(error: OSError, local: Address) -> str:
    host, port = local
    length = 128 if is_v6(host) else 32
    match error.errno:
        case errno.EADDRNOTAVAIL:
            return (
                f"no interface has that address; `ip address add {host}/{length} dev lo` "
                "gives it one"
            )
        case errno.EADDRINUSE:
            return f"another process has it; `ss -lunp sport = :{port}` names it"
        case errno.EACCES:
            return f"ports below 1024 need CAP_NET_BIND_SERVICE; choose another than {port}"
    return str(error)
