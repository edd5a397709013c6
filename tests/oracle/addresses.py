"""Where frames come from and go to: good clients, endpoints, and everybody who is neither. Pure."""

import functools
import ipaddress
import random

from relayctl.wire.address import Address
from tests.oracle.node import CLUSTERS, Node

_PORTS = [1, 53, 1023, 1024, 3478, 5100, 40000, 65535]


def is_v6(address: Address) -> bool:
    return ":" in address[0]


def _port(source: random.Random) -> int:
    return source.choice(_PORTS) if source.random() < 0.3 else source.randrange(1, 65536)


def _inside(source: random.Random, network: str) -> str:
    first, bits = _network(network)
    ip = first + source.getrandbits(bits) if bits else first
    return str(ipaddress.ip_address(ip) if ":" not in network else ipaddress.IPv6Address(ip))


@functools.cache
def _network(text: str) -> tuple[int, int]:
    found = ipaddress.ip_network(text)
    return int(found.network_address), found.max_prefixlen - found.prefixlen


_GOOD = {
    False: ("192.0.2.0/24", "11.0.0.0/8", "198.51.100.77/32", "223.255.255.0/24", "10.4.0.0/16"),
    True: ("2001:db8:c::/64", "2600::/12", "fd00:9::100/120", "2001:db8:301::/48"),
}
_BAD = {
    False: (
        *("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"),
        *("255.255.255.255/32", "10.2.0.0/24", "10.77.0.0/16", "10.5.0.0/30"),
    ),
    True: (
        *("::/128", "::1/128", "fe80::/10", "ff00::/8", "::ffff:192.0.2.0/120"),
        *("::ffff:10.2.0.0/120", "fd00:2::/112", "2001:db8:300::/96"),
    ),
}
_NEAR = {
    False: (
        *("1.0.0.0/32", "126.255.255.255/32", "128.0.0.0/32", "169.253.255.255/32"),
        *("169.255.0.0/32", "223.255.255.255/32", "10.2.1.0/32", "10.76.255.255/32", "10.5.0.4/32"),
    ),
    True: (
        *("::2/128", "fe7f::/128", "fec0::/128", "feff::/128", "::fffe:192.0.2.1/128"),
        *("::1:ffff:192.0.2.1/128", "fd00:2::1:0/128", "::192.0.2.1/128"),
    ),
}
"""Good neighbours of bad addresses."""


def client(source: random.Random, relay: Node, v6: bool) -> Address:
    """One that may be a client of this relay."""
    networks = _GOOD[v6]
    if relay.inner_clients and source.random() < 0.3:
        networks = ("fd00:2::/112",) if v6 else ("10.2.0.128/25",)
    return _inside(source, source.choice(networks)), _port(source)


def any_client(source: random.Random, relay: Node, v6: bool) -> Address:
    """As a rule a good one."""
    chance = source.random()
    if chance < 0.7:
        return client(source, relay, v6)
    if chance < 0.72:
        return client(source, relay, v6)[0], 0
    if chance < 0.85:
        return _inside(source, source.choice(_BAD[v6])), _port(source)
    if chance < 0.93:
        return _inside(source, source.choice(_NEAR[v6])), _port(source)
    ours = sorted(host for host in relay.ours if (":" in host) == v6)
    return source.choice(ours), source.choice([3478, 5100, _port(source)])


_ALLOWED = [(str(network), cluster.ports) for cluster in CLUSTERS for network in cluster.allow]


def endpoint(source: random.Random) -> Address:
    """A transceiver, inside some allow-list and its ports."""
    network, (first, last) = source.choice(_ALLOWED)
    host = _inside(source, network)
    while host in ("10.2.0.1", "fd00:2::1"):  # our own
        host = _inside(source, network)
    return host, source.choice([first, last, 5000, source.randrange(first, last + 1)])


def stranger(source: random.Random, v6: bool) -> Address:
    """Somebody whom no allow-list knows."""
    return _inside(source, source.choice(_GOOD[v6] + _NEAR[v6])), _port(source)


def other_destination(source: random.Random, relay: Node, vip: Address) -> Address:
    """Near a VIP: another port, or another address of the same family."""
    ours = [host for host in relay.ours if (":" in host) == is_v6(vip)]
    choice = source.randrange(3)
    if choice == 0:
        return vip[0], source.choice([vip[1] ^ 1, 5100, 0, _port(source)])
    if choice == 1:
        return source.choice(sorted(ours)), source.choice([vip[1], 443, 5100])
    return stranger(source, is_v6(vip))[0], vip[1]
