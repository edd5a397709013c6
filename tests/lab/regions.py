"""Two regions: an ingress relay with the VIP, and peer relays that alone reach transceivers.

The relays of a lab, each with a configuration of its own. The ingress has no cluster but by way of
its peers, whose own VIPs nobody uses here.
"""

import dataclasses

from relayctl.wire.address import render
from tests.lab import service_config, topology
from tests.lab.service_config import CLUSTER, Vip, toml
from tests.lab.services import Services
from tests.lab.site import RelayPlace, Site

PEER, INGRESS, SECOND_PEER = 0, 1, 2  # as the lab counts relays; as peers they are 1, 2 and 3
_NOBODYS = "10.2.0.200/32"  # a cluster that the ingress reaches directly: it needs one


def with_second_peer(site: Site) -> Site:
    """Beside the first one on its node: that works with the socket datapath only."""
    inner = "10.2.0.11"
    site.relay.run(["ip", "address", "replace", f"{inner}/24", "dev", "inner0"])
    second = RelayPlace(f"{site.instance}-c", site.relay, inner, (inner, 9100))
    return dataclasses.replace(site, more_relays=(*site.more_relays, second))


class Regions(Services):
    """`loops`: the peer is told that the way to the transceivers is the ingress."""

    loops = False

    def relay_text(self, n: int) -> str:
        return self._ingress() if n == INGRESS else self._peer(n)

    def _ingress(self) -> str:
        peers = [n for n in range(len(self.site.relays)) if n != INGRESS]
        return self._text(INGRESS, self.setup.vips) + self._sections(peers, via=True, vips=[])

    def _peer(self, n: int) -> str:
        local = topology.VIP, 3500 + n  # as behind a 1:1 NAT
        unused = Vip(20 + n, (f"203.0.113.{77 + n}", 3478), local)
        vips = [{"id": 1, "public": render(self.site.vip)}]
        return self._text(n, (unused,)) + self._sections([INGRESS], via=self.loops, vips=vips)

    def _text(self, n: int, vips: tuple[Vip, ...]) -> str:
        site = dataclasses.replace(self.site.at_relay(n), allow=_NOBODYS)
        setup = dataclasses.replace(self.setup, vips=vips)
        text = service_config.relay(site, setup, self._keys)
        return text.replace(f"id = {CLUSTER}\n", "id = 99\n")

    def _sections(self, others: list[int], *, via: bool, vips: list[dict[str, object]]) -> str:
        cluster = {"id": CLUSTER, "allow": [f"{self.site.endpoint[0]}/32"]}
        by = {"via": [other + 1 for other in others]} if via else {}
        text = toml({}, ("cluster", cluster | by))
        for other in others:
            inner = self.site.relays[other].inner
            peer = {"id": other + 1, "address": inner, "admin": f"{inner}:9100"}
            text += toml({}, ("peer", peer), *(("peer.vips", vip) for vip in vips))
        return text


class LoopingRegions(Regions):
    loops = True
