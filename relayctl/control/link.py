"""Interfaces as the kernel describes them, and how a VLAN device reaches the wire. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relayctl.datapath.base import DatapathError

CUSTOMER_TAG = 0x8100  # IEEE 802.1Q
SERVICE_TAG = 0x88A8  # IEEE 802.1ad
ELSEWHERE = -1  # index of a lower device in another network namespace


@dataclass(frozen=True, slots=True)
class Vlan:
    """What a VLAN device adds to its lower device."""

    lower: int  # interface index, or `ELSEWHERE`
    id: int
    protocol: int = CUSTOMER_TAG


@dataclass(frozen=True, slots=True)
class Link:
    """An interface. `mac` is empty where it has none; `up` includes its carrier."""

    index: int
    name: str
    mac: bytes
    up: bool
    mtu: int
    vlan: Vlan | None = None


@dataclass(frozen=True, slots=True)
class Carrier:
    """Who carries the frames of an interface: itself, or the device below its VLANs."""

    ifindex: int  # of the interface: routes and neighbours name it
    carrier: int  # of the device that sees the tagged frames
    tags: tuple[int, int] = (0, 0)  # VLAN ids, outer first; 0 = none


def carriers(names: Iterable[str], links: Iterable[Link]) -> Mapping[str, Carrier]:
    """The carrier of each named interface. Raises `DatapathError` for what cannot be expressed."""
    by_index = {link.index: link for link in links}
    by_name = {link.name: link for link in by_index.values()}
    found = {}
    for name in names:
        if name not in by_name:
            raise DatapathError(f"interface.name = '{name}': there is none; `ip link` lists them")
        found[name] = _carrier(by_name[name], by_index)
    return found


def _carrier(link: Link, links: Mapping[int, Link]) -> Carrier:
    below, vlans = link, list[Vlan]()
    while below.vlan:
        vlans.insert(0, below.vlan)  # outer first
        if len(vlans) > 2:
            raise _refusal(link, "has more than two VLAN tags; use a device with one or two")
        if below.vlan.lower not in links:
            fault = "its lower device is in another network namespace; move it into this one"
            raise _refusal(link, fault)
        below = links[below.vlan.lower]
    protocols = [vlan.protocol for vlan in vlans]
    if protocols not in ([], [CUSTOMER_TAG], [SERVICE_TAG, CUSTOMER_TAG]):
        raise _refusal(
            link,
            f"has tags of type {', '.join(f'{each:#06x}' for each in protocols)}; one tag has to "
            "be 802.1Q (0x8100), the outer of two 802.1ad (0x88a8)",
        )
    ids = [vlan.id for vlan in vlans]
    if 0 in ids:
        raise _refusal(link, "VLAN id 0 is a priority tag; use an id of 1-4094")
    outer, inner = [*ids, 0, 0][:2]
    return Carrier(link.index, below.index, (outer, inner))


def _refusal(link: Link, fault: str) -> DatapathError:
    return DatapathError(f"interface.name = '{link.name}': {fault}")
