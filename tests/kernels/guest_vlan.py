"""VLAN end to end, with the kernel's own VLAN devices at both ends of a veth.

    client      farwire.10 ─┐                   ┌─ wire.10  VIP, outer leg
                            ├ farwire ──── wire ┤  XDP
    transceiver farwire.20 ─┘                   └─ wire.20  inner leg

The program sits on the carrier `wire`. What it knows goes from one VLAN to the other and back under
the right tags; what it does not know reaches the socket on `wire.10` as if no program were there.
The far end is in a namespace, the relay's is not: the machine is ours.
"""

import contextlib
import socket
import subprocess
from collections.abc import Callable

from relayctl.datapath.base import Nexthop
from relayctl.datapath.spec import Interface, Role
from relayctl.reason import Reason
from tests.kernel import rig
from tests.kernel.packets import DTLS, spp_header
from tests.kernel.rig import CLIENT, ENDPOINT, INNER, SPORT, VIP, Rig
from tests.lab import namespace

FAR = "kv-far"
OUTER_TAG, INNER_TAG, FOREIGN_TAG = 10, 20, 30
OUTER_PORT, INNER_PORT = 40, 41  # of egress: apart from the rig's
RELAY_MAC, FAR_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
_STRANGER = (CLIENT[0], CLIENT[1] + 1)  # has no flow
_WAIT_S = 20.0

# Frames need their tags and whole checksums in them: a veth adds neither on the way. Neighbour
# discovery would be counted with the rest.
_LAB = f"""
sysctl -q net.ipv6.conf.default.disable_ipv6=1
{FAR} sysctl -q net.ipv6.conf.default.disable_ipv6=1
ip link add wire address {RELAY_MAC} type veth peer farwire netns {FAR} address {FAR_MAC}
ethtool -K wire gro on tx off txvlan off
{FAR} ethtool -K farwire gro on tx off txvlan off
ip link set wire up
{FAR} ip link set farwire up
ip link add link wire name wire.{OUTER_TAG} up type vlan id {OUTER_TAG}
ip link add link wire name wire.{INNER_TAG} up type vlan id {INNER_TAG}
{FAR} ip link add link farwire name farwire.{OUTER_TAG} up type vlan id {OUTER_TAG}
{FAR} ip link add link farwire name farwire.{INNER_TAG} up type vlan id {INNER_TAG}
{FAR} ip link add link farwire name farwire.{FOREIGN_TAG} up type vlan id {FOREIGN_TAG}
ip address add {VIP[0]}/24 dev wire.{OUTER_TAG}
ip address add {INNER}/24 dev wire.{INNER_TAG}
ip route add {CLIENT[0]} dev wire.{OUTER_TAG}
{FAR} ip address add {CLIENT[0]}/24 dev farwire.{OUTER_TAG}
{FAR} ip address add {ENDPOINT[0]}/24 dev farwire.{INNER_TAG}
{FAR} ip route add {VIP[0]} dev farwire.{OUTER_TAG}
{FAR} ip neigh add {VIP[0]} lladdr {RELAY_MAC} dev farwire.{OUTER_TAG}
{FAR} ip neigh add {VIP[0]} lladdr {RELAY_MAC} dev farwire.{FOREIGN_TAG}
{FAR} ip neigh add {INNER} lladdr {RELAY_MAC} dev farwire.{INNER_TAG}
"""


def make_lab() -> tuple[Interface, Interface]:
    """The relay's interfaces, which the program has to be compiled for."""
    namespace.create(FAR)
    for line in filter(None, _LAB.splitlines()):
        command = line.split()
        if command[0] == FAR:
            command[:1] = ["nsenter", f"--net={namespace.path(FAR)}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(f"{line}: {done.stderr.strip()}")
    return (
        _interface(OUTER_TAG, OUTER_PORT, Role.OUTER),
        _interface(INNER_TAG, INNER_PORT, Role.INNER),
    )


def _interface(tag: int, port: int, role: Role) -> Interface:
    name = f"wire.{tag}"
    carrier = socket.if_nametoindex("wire")
    return Interface(name, socket.if_nametoindex(name), port, role, carrier, (tag, 0))


def exchange(relay: Rig) -> dict[str, str]:
    """What was tried → "ok", or what happened instead. The program has to be attached."""
    macs = bytes.fromhex(RELAY_MAC.replace(":", "")), bytes.fromhex(FAR_MAC.replace(":", ""))
    inner = Nexthop(INNER_PORT, ENDPOINT[0], True, 1500, *macs, tags=(INNER_TAG, 0))
    outer = Nexthop(OUTER_PORT, CLIENT[0], True, 1500, *macs, tags=(OUTER_TAG, 0))
    relay.datapath.write_nexthop(rig.TO_ENDPOINT, inner)
    relay.datapath.write_nexthop(rig.TO_CLIENT, outer)
    relay.install()
    wrapped = spp_header(CLIENT, VIP) + DTLS
    with contextlib.ExitStack() as stack:

        def far(address: tuple[str, int]) -> socket.socket:
            return stack.enter_context(namespace.call(FAR, lambda: _bound(address)))

        client, stranger, transceiver = far(CLIENT), far(_STRANGER), far(ENDPOINT)
        daemon = stack.enter_context(_bound(VIP))

        def foreign() -> None:
            option, name = socket.SO_BINDTODEVICE, f"farwire.{FOREIGN_TAG}".encode()
            stranger.setsockopt(socket.SOL_SOCKET, option, name)
            stranger.sendto(DTLS, VIP)

        return {
            "hit, tag to tag": _outcome(
                relay,
                Reason.FORWARD,
                lambda: client.sendto(DTLS, VIP),
                lambda: transceiver.recvfrom(2048) == (wrapped, (INNER, SPORT)),
            ),
            "return, tag to tag": _outcome(
                relay,
                Reason.RETURN,
                lambda: transceiver.sendto(wrapped, (INNER, SPORT)),
                lambda: client.recvfrom(2048) == (DTLS, VIP),
            ),
            "miss, up to the VLAN device": _outcome(
                relay,
                Reason.PUNT_ORPHAN,
                lambda: stranger.sendto(DTLS, VIP),
                lambda: daemon.recvfrom(2048) == (DTLS, _STRANGER),
            ),
            "foreign tag": _outcome(relay, Reason.DROP_WRONG_SIDE, foreign, lambda: True),
        }


def _bound(address: tuple[str, int]) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.settimeout(_WAIT_S)
    made.bind(address)
    return made


def _outcome(
    relay: Rig, reason: Reason, send: Callable[[], object], arrived: Callable[[], bool]
) -> str:
    """Did what was sent arrive as it should, and was it counted once, under that reason?"""
    relay.datapath.beat(rig.now())
    with relay.counted() as counts:
        send()
        try:
            how = "" if arrived() else "it arrived changed; "
        except TimeoutError:
            how = "it did not arrive; "
    if not how and counts == {reason: 1}:
        return "ok"
    counted = ", ".join(f"{found.name} {times}" for found, times in counts.items())
    return f"{how}counted: {counted or 'nothing'}"
