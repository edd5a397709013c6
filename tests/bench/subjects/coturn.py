"""coturn with one channel per client: ChannelData in, UDP to the peer out (RFC 8656)."""

import shutil
import socket
from functools import partial
from typing import Any

from aioice import stun

from tests.bench import wire
from tests.bench.rig import DIRECTORY, Rig
from tests.bench.subjects import legs
from tests.bench.subjects.base import Leg, NotRun
from tests.bench.subjects.process import ProcessRelay, listens
from tests.bench.wire import ENDPOINT_PORT, HOSTS, VIP

CHANNEL = 0x4000
_CHANNEL_HEADER = 4  # bytes
_UDP = 17 << 24


class Coturn(ProcessRelay):
    """Allocations are made by real requests, from the clients' own addresses."""

    def carry(self, flows: int) -> None:
        super().carry(flows)
        self._rig.node_of("gen0").netlink(_be_clients)
        for number in range(flows):
            _open_channel(self._rig, number)


def coturn(rig: Rig) -> Coturn:
    if not shutil.which("turnserver"):
        raise NotRun("no turnserver: apt install coturn")
    argv = ["turnserver", "-n", "--no-auth", "--no-tls", "--no-dtls", "--no-cli", "--no-rfc5780"]
    argv += ["--no-stun-backward-compatibility", "-L", VIP[4][0], "-p", str(VIP[4][1])]
    argv += ["-E", HOSTS[4]["inner0"], "--relay-threads", "1", "--no-multicast-peers"]
    argv += ["--log-file", "stdout", "--pidfile", str(DIRECTORY / "turnserver.pid")]
    return Coturn(*(rig, [_way()], "coturn channel", argv), ready=lambda: listens(rig, VIP[4][1]))


def _way() -> Leg:
    frame = wire.from_client(
        4, wire.channel_data(wire.rtp(), CHANNEL), stamp=_CHANNEL_HEADER + wire.STAMP
    )
    watch = legs.to_port(4, ENDPOINT_PORT, frame.stamp_at - _CHANNEL_HEADER)
    return Leg(frame, "gen0", "sink0", watch, -_CHANNEL_HEADER)


def _be_clients(ip: Any) -> None:
    """All client addresses are at home there."""
    loopback = ip.link_lookup(ifname="lo")[0]
    ip.route("replace", dst="100.64.0.0/10", oif=loopback, type="local", scope="host", table=255)
    ip.route("replace", dst=f"{VIP[4][0]}/32", gateway=HOSTS[4]["outer0"])


def _open_channel(rig: Rig, number: int) -> None:
    """Raises `NotRun` if the server refuses or does not answer."""
    sock = rig.node_of("gen0").call(partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM))
    with sock:
        sock.bind(wire.client(number, 4))
        sock.settimeout(1.0)
        sock.connect(VIP[4])
        _ask(sock, stun.Method.ALLOCATE, {"REQUESTED-TRANSPORT": _UDP, "LIFETIME": 600})
        peer = HOSTS[4]["sink0"], ENDPOINT_PORT
        _ask(sock, stun.Method.CHANNEL_BIND, {"CHANNEL-NUMBER": CHANNEL, "XOR-PEER-ADDRESS": peer})


def _ask(sock: socket.socket, method: stun.Method, attributes: dict[str, Any]) -> None:
    request = stun.Message(message_method=method, message_class=stun.Class.REQUEST)
    request.attributes.update(attributes)
    try:
        sock.send(bytes(request))
        answer = stun.parse_message(sock.recv(2048))
    except (TimeoutError, OSError, ValueError) as error:
        raise NotRun(f"coturn: {method.name}: {error!r}") from error
    if answer.message_class is not stun.Class.RESPONSE:
        raise NotRun(f"coturn: {method.name}: {answer.attributes.get('ERROR-CODE')}")
