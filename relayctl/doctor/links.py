"""Preflight checks of the interfaces that carry the program.

Pure: configuration and `Host` values in, results out.
"""

from relayctl.config import Interface
from relayctl.doctor.host import Host, Link
from relayctl.doctor.result import Result, fail, ok, skip, warn
from relayctl.inspect.pinned import Own

VETH_MTU = 3506  # largest at the other end of a veth for a native program: one page holds a frame


def exists(interface: Interface, host: Host) -> Result:
    name = f"link:{interface.name}"
    link = host.link(interface.name)
    if link is None:
        present = ", ".join(each.name for each in host.links)
        return fail(name, f"no such interface here; there are {present}", "ip link")
    if not link.up:
        return fail(name, "is down", f"ip link set dev {link.name} up")
    carrier = host.carrier(link)
    below = f", on {carrier.name}" if carrier is not link else ""
    return ok(name, f"up, {interface.role}, mtu {link.mtu}{below}")


def mtu(link: Link, host: Host, mode: str) -> Result:
    """What the other end of a veth may send has to fit one page, or no native program goes on."""
    name, peer = f"mtu:{link.name}", host.by_index(link.peer)
    if mode == "generic" or link.kind != "veth" or (peer or link).mtu <= VETH_MTU:
        return ok(name, str(link.mtu))
    if peer is None:  # elsewhere, and mostly of the same size
        return warn(
            name,
            f"{link.mtu}: if the other end has that too, it is above {VETH_MTU}, the limit of "
            "native XDP on veth",
            f"there: ip link set dev <other end> mtu {VETH_MTU}",
        )
    return fail(
        name,
        f"{peer.mtu} at {peer.name} is above {VETH_MTU}, the limit of native XDP on veth",
        f"ip link set dev {peer.name} mtu {VETH_MTU}",
    )


def receive_merging(link: Link, mode: str) -> Result:
    """Drivers refuse a native program while hardware merges received packets."""
    name = f"lro:{link.name}"
    if mode == "generic":
        return skip(name, "the kernel switches it off for a generic program")
    for feature, switch in (("rx-lro", "lro"), ("rx-gro-hw", "rx-gro-hw")):
        if feature in link.features:
            return fail(name, f"{feature} is on", f"ethtool -K {link.name} {switch} off")
    return ok(name, "off")


def gro_forwarding(link: Link, mode: str) -> Result:
    """Merged UDP packets reach a generic program as one, longer than the MTU."""
    name = f"udp-gro:{link.name}"
    if "rx-udp-gro-forwarding" not in link.features:
        return ok(name, "off")
    judge = fail if mode == "generic" else warn
    return judge(
        name,
        "on: UDP packets are merged before a generic program or a socket sees them",
        f"ethtool -K {link.name} rx-udp-gro-forwarding off",
    )


def promiscuous(link: Link) -> Result:
    """The program forwards what the interface takes, to whatever MAC address it was sent."""
    name = f"promiscuous:{link.name}"
    if not link.promiscuous:
        return ok(name, "off")
    return warn(
        name,
        "takes and forwards frames for other machines too; that the router has a wrong MAC address "
        "shows only when this ends",
        f"end the capture that wants it, or ip link set dev {link.name} promisc off",
    )


def veth_peer(link: Link, host: Host) -> Result:
    """Frames redirected into a veth vanish unless its other end has GRO or a program."""
    name = f"veth-peer:{link.name}"
    if link.kind != "veth":
        return skip(name, "is no veth")
    peer = host.by_index(link.peer)
    if peer is None:
        return warn(
            name,
            "the other end is in another network namespace and cannot be seen; without GRO there, "
            "redirected frames vanish",
            "there: ethtool -K <other end> gro on tx off",
        )
    if "rx-gro" not in peer.features and peer.program is None:
        return fail(
            name,
            f"{peer.name} has neither GRO nor a program: redirected frames vanish",
            f"ethtool -K {peer.name} gro on",
        )
    return ok(name, f"{peer.name} takes redirected frames")


def veth_checksums(link: Link, host: Host) -> Result:
    """A sender behind a veth leaves UDP checksums to hardware that is not there."""
    name = f"veth-checksum:{link.name}"
    peer = host.by_index(link.peer)
    if link.kind != "veth" or peer is None:
        return skip(name, "no veth whose other end is in this network namespace")
    if peer.features & {"tx-checksum-ip-generic", "tx-checksum-ipv4"}:
        return warn(
            name,
            f"{peer.name} leaves checksums undone: packets of senders on this machine arrive with "
            "bad ones",
            f"ethtool -K {peer.name} tx off",
        )
    return ok(name, f"{peer.name} sends whole checksums")


def vlan_tags(link: Link, host: Host, vlan: bool) -> Result:
    """The program has to see tags in the frame. `vlan`: a configured VLAN device lies above."""
    name, peer = f"rxvlan:{link.name}", host.by_index(link.peer)
    if link.kind == "veth" and vlan:
        if peer is None or "tx-vlan-hw-insert" in peer.features:
            end = peer.name if peer else "the other end"
            mend = f"ethtool -K {peer.name if peer else '<other end>'} txvlan off"
            return warn(name, f"{end} may leave tags outside the frame", mend)
    elif link.kind != "veth" and "rx-vlan-hw-parse" in link.features:
        mend = f"ethtool -K {link.name} rxvlan off"
        if vlan:
            return fail(name, "tags are stripped before the program sees them", mend)
        return warn(name, "tagged frames look untagged to the program", mend)
    return ok(name, "tags reach the program")


def foreign_program(link: Link, own: Own, program: str, mode: str) -> Result:
    """Somebody else's XDP program, which `serve` refuses to replace, or ours in another mode than
    `mode`. `program` is its name."""
    name = f"xdp:{link.name}"
    if link.program is None:
        return ok(name, "free")
    if link.program in own.programs:
        if link.mode == mode:
            return ok(name, f"ours, id {link.program}, {link.mode}")
        return fail(
            name,
            f"ours, id {link.program}, {link.mode}, but xdp_mode = '{mode}'; frames do not pass "
            "between the two",
            "relayctl unload, which ends all calls",
        )
    if own.unknown:
        return warn(
            name,
            f"cannot tell: program {link.program} ({program or 'name unknown'}) is attached, and "
            f"{own.unknown}",
            "run it as root, and with `nsenter --net=/run/netns/NAME` instead of `ip netns exec`",
        )
    # plain `xdp off` does nothing to a generic program where the driver knows native ones
    how = {"generic": "xdpgeneric", "offloaded": "xdpoffload"}.get(link.mode or "", "xdp")
    return fail(
        name,
        f"program {link.program} ({program or 'name unknown'}) is attached and not ours",
        f"find its owner, or ip link set dev {link.name} {how} off",
    )
