"""A call under attack, and what an attacker knows about it and about the relay."""

import contextlib
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from relayctl.wire.address import Address, pack_host, parse, render
from relayctl.wire.route_token import Route, mint
from tests.clients.lean_driver import LeanDriver
from tests.lab import frame as frames
from tests.lab import http
from tests.lab.deployment import Deployment
from tests.lab.frame import Datagram, Kind
from tests.lab.hostile import Target, binding_request
from tests.lab.service_config import CLUSTER
from tests.lab.services import Services

QUIET_S = 0.2


def authentic_request(services: Services) -> bytes:
    """A Binding request that opens a flow to the transceiver, as often as it comes: no call of
    that name is there."""
    host, port = services.site.endpoint
    number = int.from_bytes(pack_host(host)[12:], "big")
    token = mint(services.setup.key, Route(CLUSTER, number, port, random.randbytes(3)))
    return binding_request(random.Random(1), token.encode() + b":abcd")


def target(services: Services) -> Target:
    """The relay as somebody knows it who has its route key."""
    site = services.site
    return Target(
        key=services.setup.key,
        cluster=CLUSTER,
        endpoint=site.endpoint,
        forbidden=(
            ("8.8.8.8", 5000),
            ("10.1.0.1", 5000),
            ("169.254.169.254", 80),
            ("127.0.0.1", 5000),
            ("0.0.0.0", 5000),
            ("224.0.0.1", 5000),
            ("255.255.255.255", 5000),
            (site.vip[0], site.vip[1]),
            (site.relay_inner, 5100),
            (site.endpoint[0], 1023),
            (site.endpoint[0], 0),
        ),
        vip=site.vip,
    )


@dataclass
class Victim:
    """A call that goes on, and what could be read of it."""

    services: Services
    lean: LeanDriver
    id: str
    client: Address
    token: bytes
    check: bytes
    rtp: list[bytes]
    dtls: list[bytes]

    @property
    def username(self) -> bytes:
        match = re.search(rb"[A-Za-z0-9+/]{24}:[A-Za-z0-9+/]+", self.check)
        assert match
        return match[0]

    def seen(self) -> dict[str, Any]:
        """As the transceiver sees it."""
        found: dict[str, Any] = self.services.call(self.id).json()
        return found

    def expect_unharmed(self) -> None:
        """Raises `AssertionError`. The call falls silent, so that nothing is under way."""
        gap_ms = self.lean.report()["calls"][0]["gap_ms"]
        self.lean.ask("mute")
        time.sleep(QUIET_S)
        (call,) = self.lean.report()["calls"]
        seen = self.seen()
        (flow,) = [flow for flow in self.services.flows() if flow["client"] == render(self.client)]
        self.lean.ask("unmute")
        time.sleep(QUIET_S)
        self.lean.ask("mark")  # the silence was ours
        assert (seen["state"], seen["client"], seen["moves"]) == (
            "connected",
            render(self.client),
            0,
        )
        assert flow["endpoint"] == render(self.services.site.endpoint)
        assert call["lost"] == {"up": 0, "down": 0, "up_reported": 0}
        assert call["rejected"] == 0
        assert gap_ms < 800


@contextlib.contextmanager
def spy_on(deployment: Deployment) -> Iterator[Victim]:
    """Start a call and read what its client sends."""
    services, site = deployment.services, deployment.site
    with (
        site.client.capture("eth0") as wire,
        LeanDriver.start(site.client, site.calls_url, site.client_host) as lean,
    ):
        time.sleep(0.3)
        wire.setblocking(False)
        seen = list(_datagrams_to(site.vip, wire))
        (call,) = lean.report()["calls"]
        client = parse(services.call(call["id"]).json()["client"])
        mine = [each for each in seen if each.source == client]
        check = next(each.payload for each in mine if each.payload[:2] == b"\x00\x01")
        token = re.search(rb"([A-Za-z0-9+/]{24}):", check)
        assert token
        yield Victim(
            services=services,
            lean=lean,
            id=call["id"],
            client=client,
            token=token[1],
            check=check,
            rtp=[each.payload for each in mine if each.kind is Kind.RTP],
            dtls=[each.payload for each in mine if each.kind is Kind.DTLS],
        )


def _datagrams_to(vip: Address, wire: Any) -> Iterator[Datagram]:
    while True:
        try:
            found = frames.parse(wire.recv(65536))
        except BlockingIOError:
            return
        if found is not None and found.destination == vip:
            yield found


def dropped(services: Services) -> dict[str, int]:
    """Datagrams that the transceiver dropped, by reason."""
    site = services.site
    metrics = http.request(site.transceiver, f"{site.transceiver_url}/metrics").text
    pattern = r'^ferryline_transceiver_datagrams_dropped_total\{reason="(\w+)"\} (\S+)$'
    return {name: int(float(n)) for name, n in re.findall(pattern, metrics, re.MULTILINE)}


def grown(services: Services, before: dict[str, int]) -> dict[str, int]:
    time.sleep(0.2)
    after = dropped(services)
    return {name: n - before.get(name, 0) for name, n in after.items() if n != before.get(name, 0)}
