"""A fleet in the lab: two transceivers that signaling finds by a real Redis alone, and offers."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from relayctl.wire.address import Address, render
from relayctl.wire.registration import key_of
from tests.clients import sdp
from tests.clients.ice import Credentials
from tests.lab.node import Node
from tests.lab.redis_server import RedisServer
from tests.lab.service_config import CLUSTER, Backend, Cluster, Vip
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import SIGNALING_INNER, TRANSCEIVERS, Lab

PASSWORD = "password-of-redis"
FIRST: Address = (TRANSCEIVERS[0], 5000)
SECOND: Address = (TRANSCEIVERS[1], 5000)

_PATIENCE_S = 60.0
_OFFER = sdp.offer(
    sdp.Local(
        ice=Credentials("abcdefgh", "abcdefghijklmnopqrstuvwx"),
        fingerprint="sha-256 " + ":".join(["AB"] * 32),
        ssrc=1234,
        address=("10.1.0.2", 40000),
        channel=True,
    )
)


@dataclass(frozen=True)
class Offered:
    """An offer's end. `seconds` from its first byte to the answer's last."""

    status: int
    headers: httpx.Headers
    text: str
    seconds: float


@dataclass
class Fleet:
    """`transceiver` is the first one of the services, `another` the second one."""

    lab: Lab
    redis: RedisServer
    services: Services

    def offer(self) -> Offered:
        return offer(self.services.site.client, self.services.site.calls_url)

    def place(self) -> str:
        """Begin a call: the endpoint that has it."""
        offered = self.offer()
        assert offered.status == 201, offered.text
        endpoint: str = self.ask(f"{offered.headers['Location']}/path").json()["endpoint"]
        return endpoint

    def ask(self, path: str) -> httpx.Response:
        url = f"{self.services.site.base_url}{path}"
        return self.services.site.client.call(lambda: httpx.get(url, trust_env=False, timeout=20.0))

    def figure(self, name: str) -> float:
        """Of signaling's metrics, all labels together."""
        lines = self.ask("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def start_another(self, cluster: int = CLUSTER) -> None:
        self.services.start_another("another", self.lab.transceivers[1], SECOND, cluster)

    def stop_another(self) -> None:
        if program := self.services.programs.pop("another", None):
            program.stop()
        until(lambda: self.figure("ferryline_signaling_transceivers_ready") == 1)

    def registered(self) -> set[str]:
        """Endpoints whose keys are there."""
        with self.redis.client() as client:
            keys = set(client.scan_iter(match="transceiver:*", count=1000))
        return {render(each) for each in (FIRST, SECOND) if key_of(each) in keys}


def offer(node: Node, url: str, headers: Mapping[str, str] | None = None) -> Offered:
    """One offer of a client that never comes."""
    kind = {"Content-Type": "application/sdp", **(headers or {})}

    def send() -> Offered:
        with httpx.Client(trust_env=False, timeout=20.0) as client:
            begun = time.monotonic()
            reply = client.post(url, content=_OFFER, headers=kind)
            took = time.monotonic() - begun
        return Offered(reply.status_code, reply.headers, reply.text, took)

    return node.call(send)


@contextlib.contextmanager
def fleet(
    prefix: str,
    *,
    allow: str = "10.2.0.0/24",
    clusters: tuple[Cluster, ...] = (),
    more_vips: tuple[Vip, ...] = (),
    backend: Backend = "echo",
    model: Mapping[str, object] | None = None,
) -> Iterator[Fleet]:
    """With the first transceiver running and known. `allow`: the network of its cluster."""
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(Lab(prefix, transceivers=2))
        redis = stack.enter_context(
            RedisServer(lab.signaling, host=SIGNALING_INNER, password=PASSWORD)
        )
        services = Services(
            dataclasses.replace(in_lab(lab), allow=allow),
            datapath="socket",
            echo="opus",
            capacity=1000,
            redis=redis.url,
            clusters=clusters,
            more_vips=more_vips,
            backend=backend,
            model=model,
        )
        yield Fleet(lab, redis, stack.enter_context(services))


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)
