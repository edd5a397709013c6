"""Preflight checks of network drivers: what each asks for before it takes a native program.

Pure: `Link` values in, results out.
"""

from relayctl.config import RelayConfig
from relayctl.doctor.host import Link
from relayctl.doctor.result import Result, fail, ok, skip, warn

HALF = {"ena", "gve"}  # drivers that want as many spare queues as are in use
NO_HEADROOM = {"gve"}  # drivers that leave no room for the SPP header


def channels(link: Link, config: RelayConfig, cpus: int) -> Result:
    """Drivers take queues of their own for what a native program sends."""
    name, found = f"channels:{link.name}", link.channels
    if config.xdp_mode == "generic" or found is None:
        return skip(name, "generic mode" if found else "the driver has no channels to set")
    used, most = found.used, found.most
    detail = f"{used} of {most} in use"
    if link.driver in HALF and used > most // 2:
        return fail(
            name,
            f"{detail}: {link.driver} refuses a native program above {most // 2}",
            _fewer(link, most // 2) or "take a larger machine, or set xdp_mode = 'generic'",
        )
    if link.driver == "virtio_net" and used + cpus > most:
        return warn(
            name,
            f"{detail}, {cpus} CPUs: virtio_net wants a spare one for each CPU, or sends slowly",
            _fewer(link, most - cpus) or f"give the machine {used + cpus} queues",
        )
    return ok(name, detail)


def _fewer(link: Link, channels: int) -> str:
    return f"ethtool -L {link.name} combined {channels}" if channels > 0 else ""


def headroom(link: Link, config: RelayConfig) -> Result:
    """The SPP header is pushed in front of the packet, into room that the driver leaves."""
    name = f"headroom:{link.name}"
    if config.inner == "transparent" or config.xdp_mode == "generic":
        return skip(name, "no header is pushed, or not in the driver's buffer")
    if link.driver in NO_HEADROOM:
        return warn(
            name,
            f"{link.driver} leaves 2 bytes of head room, SPP needs 38: packets would be dropped",
            "set inner = 'transparent', or xdp_mode = 'generic'",
        )
    return ok(name, link.driver or "driver unknown")


def queues(link: Link, cpus: int) -> Result:
    """Many drivers refuse redirected frames on a CPU that has no queue of its own."""
    name = f"queues:{link.name}"
    if link.kind:
        return skip(name, f"{link.kind} is no hardware")
    used = link.channels.used if link.channels else link.queues
    if used < cpus:
        more = link.channels is None or link.channels.most >= cpus
        return warn(
            name,
            f"{used} for sending, {cpus} CPUs: some drivers lose redirected frames",
            f"ethtool -L {link.name} combined {cpus}" if more else "give the machine more queues",
        )
    return ok(name, f"{used} for sending, {cpus} CPUs")
