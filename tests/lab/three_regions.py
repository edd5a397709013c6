"""Three regions in the lab: each a relay with a VIP of its own, an inner network and a transceiver,
its own cluster. The inner networks are joined by lines of different lengths:

    client -- hop -- router -+- relay-a -- inner-a -- line-a -+
                             +- relay-b -- inner-b -- line-b -+- core
                             +- relay-c -- inner-c -- line-c -+   |
                             +- signaling ------------------------+

A line is `tests.lab.hop`, which delays every frame.
"""

import contextlib
import dataclasses
import shutil
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from relayctl.wire.address import render
from tests.lab import service_config, topology
from tests.lab.frame import Kind
from tests.lab.hop_control import HopControl
from tests.lab.impairment import Rule
from tests.lab.node import Node
from tests.lab.program import Program, Programs
from tests.lab.service_config import Vip, toml
from tests.lab.services import Services, wait_for
from tests.lab.site import RelayPlace, Site
from tests.lab.topology import CLIENT, ROUTER, SIGNALING, Cable, Lab

REGIONS = ("a", "b", "c")
LINES_S = {"a": 0.005, "b": 0.012, "c": 0.02}  # one way, from a region to the core
PLACES = {"a": (50.1, 8.7), "b": (40.7, -74.0), "c": (35.7, 139.7)}  # degrees north and east
_INNER_NETWORKS = "10.40.0.0/14"
_SIGNALING_INNER = "10.43.0.2"


def _number(region: str) -> int:
    return REGIONS.index(region)


def relay_inner(region: str) -> str:
    return f"10.4{_number(region)}.0.1"


def endpoint(region: str) -> tuple[str, int]:
    return f"10.4{_number(region)}.0.2", 5000


def vip(region: str) -> tuple[str, int]:
    return f"203.0.113.{10 + _number(region)}", 3478


class ThreeRegions(Lab):
    NODES = (
        *("client", "hop", "router", "core", "signaling"),
        *(f"{kind}-{r}" for r in REGIONS for kind in ("relay", "inner", "line", "transceiver")),
    )

    def _build(self, stack: contextlib.ExitStack) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.programs = Programs(self.directory)
        stack.callback(self.programs.stop_all)
        self.host = Node(None, self.programs)
        self._nodes = {}
        for name in self.NODES:
            self._make_node(name)
        self._nodes["core"].sysctl({"net.ipv4.ip_forward": "1"})
        for cable in self._cables():
            self._lay(cable)
        for switch in ("hop", *(f"inner-{r}" for r in REGIONS)):
            self._wire_switch(switch)
        self._add_routes()
        for region in REGIONS:
            self._draw_line(stack, region)

    def _bumps(self) -> set[str]:
        return {f"line-{region}" for region in REGIONS}

    def _draw_line(self, stack: contextlib.ExitStack, region: str) -> None:
        directory = self.directory / f"line-{region}"
        directory.mkdir()
        line = HopControl.start(self._nodes[f"line-{region}"], directory, self.seed, nat=False)
        stack.callback(line.close)
        line.set_rules(Rule(kinds=frozenset(Kind), delay_s=LINES_S[region]))

    def _cables(self) -> list[Cable]:
        cables = [
            Cable("client", "eth0", f"{CLIENT}/24", "hop", "client0", None),
            Cable("router", "client0", f"{ROUTER}/24", "hop", "router0", None),
            Cable("signaling", "outer0", f"{SIGNALING}/24", "router", "signaling0", "10.4.0.1/24"),
            Cable("signaling", "inner0", f"{_SIGNALING_INNER}/24", "core", "sig", "10.43.0.1/24"),
        ]
        for n, r in enumerate(REGIONS):
            outer, inner = f"10.2{n}.0", f"10.4{n}.0"
            relay, switch, line = f"relay-{r}", f"inner-{r}", f"line-{r}"
            cables += [
                Cable("router", relay, f"{outer}.1/24", relay, "outer0", f"{outer}.2/24"),
                Cable(relay, "inner0", f"{inner}.1/24", switch, "relay", None),
                Cable(f"transceiver-{r}", "eth0", f"{inner}.2/24", switch, "transceiver", None),
                Cable(line, "client0", None, switch, "line", None),
                Cable("core", f"region-{r}", f"{inner}.254/24", line, "router0", None),
            ]
        return cables

    def _add_routes(self) -> None:
        add = topology.add_route
        add(self.client, "default", ROUTER)
        add(self.signaling, "default", "10.4.0.1")
        add(self.signaling, _INNER_NETWORKS, "10.43.0.1")
        for n, region in enumerate(REGIONS):
            relay, transceiver = (
                self._nodes[f"{kind}-{region}"] for kind in ("relay", "transceiver")
            )
            address = vip(region)[0]
            add(relay, "default", f"10.2{n}.0.1")
            add(relay, _INNER_NETWORKS, f"10.4{n}.0.254")
            add(transceiver, "default", f"10.4{n}.0.254")
            relay.netlink(partial(topology.add_own, address=address))
            add(self.router, f"{address}/32", f"10.2{n}.0.2")


class Regions:
    """Relays everywhere, transceivers in `staffed`, and one signaling that steers. `by_peer`:
    relays reach the transceivers of other regions by their relays only."""

    def __init__(
        self, lab: ThreeRegions, *, by_peer: bool, staffed: Iterable[str] = REGIONS
    ) -> None:
        self.staffed = tuple(staffed)
        self.regions = {r: _Region(lab, r, by_peer) for r in REGIONS}
        first = self.regions["a"]
        for region in self.regions.values():
            region.setup = dataclasses.replace(
                region.setup, key=first.setup.key, control_token=first.setup.control_token
            )
        self.site = first.site
        self._signaling: Program | None = None

    def __enter__(self) -> "Regions":
        try:
            for name, region in self.regions.items():
                region.start(with_transceiver=name in self.staffed)
            self._start_signaling()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._signaling is not None:
            self._signaling.stop()
        for region in self.regions.values():
            region.stop(check=False)

    def _start_signaling(self) -> None:
        first = self.regions["a"]
        north, east = PLACES["a"]  # where the client is
        text = toml(
            {
                "listen": render(self.site.signaling_address),
                "keys_file": first.keys_file,
                "control_token": first.setup.control_token,
                "access": "open",
                "limits.offers_per_minute_per_address": 0,
                "default_location.latitude": north,
                "default_location.longitude": east,
            },
            *(("transceiver", {"endpoint": render(endpoint(r))}) for r in self.staffed),
            *(("ingress", _ingress(r)) for r in REGIONS),
            *(("cluster", _cluster(r) | _place(r)) for r in REGIONS),
        )
        config = first.write("signaling.toml", text)
        command = [sys.executable, "-m", "signaling", "serve", "--config", str(config)]
        self._signaling = self.site.signaling.popen("signaling", command)
        wait_for(self._signaling, self.site.signaling, f"{self.site.base_url}/readyz")


def _place(region: str) -> dict[str, object]:
    north, east = PLACES[region]
    return {"latitude": north, "longitude": east}


def _ingress(region: str) -> dict[str, object]:
    name, admin = f"relay-{region}", f"http://{relay_inner(region)}:9100"
    return {"name": name, "vips": [render(vip(region))], "admin": admin, **_place(region)}


def _cluster(region: str) -> dict[str, object]:
    return {"id": _number(region) + 1, "allow": [f"{endpoint(region)[0]}/32"]}


class _Region(Services):
    """Relay and transceiver of one region; as a peer and as a cluster it has the same number."""

    def __init__(self, lab: ThreeRegions, name: str, by_peer: bool) -> None:
        self._name = name
        self._by_peer = by_peer
        super().__init__(_site(lab, name), echo="opus")
        self.setup = dataclasses.replace(
            self.setup, vips=(Vip(_number(name) + 1, vip(name), vip(name)),)
        )

    @property
    def keys_file(self) -> Path:
        return self._keys

    def start(self, *, with_transceiver: bool) -> None:
        self.write(self._keys.name, service_config.keys(self.setup))
        self.start_relay()
        if with_transceiver:
            self.start_transceiver()

    def relay_text(self, n: int) -> str:
        text = super().relay_text(n)
        own, _, _ = text.partition("\n[[cluster]]")
        others = [r for r in REGIONS if r != self._name]
        clusters = [
            _cluster(r) | ({"via": [_number(r) + 1]} if self._by_peer and r in others else {})
            for r in REGIONS
        ]
        text = own + toml({}, *(("cluster", each) for each in clusters))
        for r in others if self._by_peer else ():
            inner, number = relay_inner(r), _number(r) + 1
            peer = {"id": number, "address": inner, "admin": f"{inner}:9100"}
            vips = {"id": number, "public": render(vip(r))}
            text += toml({}, ("peer", peer), ("peer.vips", vips))
        return text

    def transceiver_text(self) -> str:
        number = _number(self._name) + 1
        site = dataclasses.replace(self.site, more_relays=_relays_of_others(self._name, self.site))
        return service_config.transceiver(site, self.setup, self._keys, number)


def _site(lab: ThreeRegions, region: str) -> Site:
    directory = lab.directory / region
    directory.mkdir(exist_ok=True)
    programs = Programs(directory)
    relay, transceiver = (
        Node(f"{lab.prefix}{kind}-{region}", programs) for kind in ("relay", "transceiver")
    )
    inner = relay_inner(region)
    return Site(
        instance=f"{lab.prefix}relay-{region}",
        directory=directory,
        host=lab.host,
        client=lab.client,
        relay=relay,
        transceiver=transceiver,
        signaling=lab.signaling,
        client_host=CLIENT,
        vip=vip(region),
        relay_inner=inner,
        relay_admin=(inner, 9100),
        endpoint=endpoint(region),
        signaling_address=(SIGNALING, 8080),
        allow=f"{endpoint(region)[0]}/32",
        interfaces=(("outer0", "outer"), ("inner0", "inner")),
    )


def _relays_of_others(region: str, site: Site) -> tuple[RelayPlace, ...]:
    """A region's transceiver hears them too: directly, if they reach it."""
    others = (relay_inner(r) for r in REGIONS if r != region)
    return tuple(RelayPlace("", site.relay, inner, (inner, 9100)) for inner in others)
