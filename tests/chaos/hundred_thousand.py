"""Redis holds a hundred thousand flows and a relay starts empty under their traffic: when are all
of them back, and what do calls notice that come up meanwhile?

    python -m tests.chaos.hundred_thousand [CLIENTS [PACKETS_PER_S]]

Time counts from the program's attachment: from there on clients' packets meet an empty table. A
flow is back when it stands in the table; an endpoint answers every packet, which confirms it.
"""

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from relayctl.cached_flow import EXPIRES_S, encode, name_of
from relayctl.datapath.base import DatapathError
from relayctl.datapath.bpf_map import Map
from relayctl.datapath.spec import pin_directory
from relayctl.flow import Flow, FlowKey
from relayctl.wire.address import Address, render
from tests.chaos import crowd
from tests.clients.lean_driver import LeanDriver
from tests.figures.measurement import Findings, Measurement, expect
from tests.lab.redis_server import RedisServer
from tests.lab.service_config import CLUSTER
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import BPFFS, CLIENT, SIGNALING_INNER, Lab
from tests.report import Target

PREFIX = "cht-"
CLIENTS = 100_000
RATE = 20_000  # packets a second of all of them
CALLS = 4
ENDPOINT_PORT = 7000
_PATIENCE_S = 60.0
_LOOK_S = 0.1
_SETTLE_S = 6.0  # until what nobody confirmed is gone again
TARGETS = (
    Target("hundred_thousand_back_s", "≤", 3, "s"),
    Target("hundred_thousand_calls_lost", "=", 0, "packets"),
    Target("hundred_thousand_calls_failed", "=", 0, "calls"),
)


def measurements() -> list[Measurement]:
    return [Measurement("hundred_thousand", TARGETS, measure)]


def measure(clients: int = CLIENTS, rate: int = RATE, prefix: str = PREFIX) -> Findings:
    with crowded(clients, rate, prefix) as (services, _), ThreadPoolExecutor() as pool:
        started = pool.submit(services.start_relay)
        attached = wait_for(lambda: _is_attached(services), "the program is not attached")
        site = services.site
        options = ("--calls", str(CALLS), "--every", "0.05")
        driver = pool.submit(
            LeanDriver.start, site.client, site.calls_url, site.client_host, *options
        )
        timeline = list(_growth(services, clients, attached))
        started.result()
        ready = time.monotonic()
        with driver.result() as lean:
            time.sleep(_SETTLE_S)
            flows = count(services)
            final = lean.stop()
        reasons = {name: count for name, count in services.reasons().items() if count}
        said = [
            line for line in services.relay.log.read_text().splitlines() if "redis gave" in line
        ]
    lost = [call["lost"]["up"] + call["lost"]["down"] for call in final["calls"]]
    failed = [call["error"] for call in final["calls"] if call.get("error")]
    expect(timeline[-1][1] >= clients, f"{timeline[-1][1]} of {clients} flows came back")
    return Findings(
        {
            "hundred_thousand_back_s": round(timeline[-1][0], 2),
            "hundred_thousand_calls_lost": sum(lost),
            "hundred_thousand_calls_failed": len(failed),
        },
        {
            "ready_s": round(ready - attached, 2),
            "timeline": timeline,
            "flows_later": flows,
            "reasons": reasons,
            "log": said,
            "calls_failed": failed,
        },
    )


@contextmanager
def crowded(clients: int, rate: int, prefix: str) -> Iterator[tuple[Services, RedisServer]]:
    """A site whose relay is gone with its tables, whose Redis has a flow of every client, and whose
    clients send."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(prefix))
        server = stack.enter_context(RedisServer(lab.signaling, host=SIGNALING_INNER))
        services = Services(in_lab(lab), echo="opus", redis=server.url)
        services.setup = dataclasses.replace(services.setup, max_flows=2 * clients + 1024)
        stack.enter_context(services)
        services.kill_relay(wipe=True)
        endpoint = (services.site.endpoint[0], ENDPOINT_PORT)
        _fill(server, clients, endpoint)
        # answers to the crowd end at the client's box, which has none of these addresses
        lab.router.run(["ip", "route", "replace", crowd.NETWORK, "via", CLIENT])
        module = (sys.executable, "-m", "tests.chaos.crowd")
        lab.transceivers[0].popen("answers", [*module, "answer", render(endpoint)])
        lab.client.popen(
            "crowd", [*module, "send", render(services.site.vip), str(clients), str(rate)]
        )
        time.sleep(1.0)
        yield services, server


def _fill(server: RedisServer, clients: int, endpoint: Address) -> None:
    with server.client() as client, client.pipeline(transaction=False) as pipeline:
        for number in range(clients):
            value = encode(Flow(endpoint, CLUSTER, 0, f"{number:08x}".encode()))
            pipeline.set(name_of(FlowKey(crowd.client(number), 1)), value, ex=EXPIRES_S)
            if number % 5000 == 4999:
                pipeline.execute()
        pipeline.execute()


def _growth(services: Services, clients: int, since: float) -> Iterator[tuple[float, int]]:
    """Seconds and flows, until all are there or patience ends."""
    deadline = since + _PATIENCE_S
    while True:
        found = count(services)
        now = time.monotonic()
        yield round(now - since, 2), found
        if found >= clients or now > deadline:
            return
        time.sleep(_LOOK_S)


def count(services: Services) -> int:
    """Flows of IPv4 clients in the relay's table; none while there is no table."""
    try:
        with Map.open(pin_directory(BPFFS, services.site.instance) / "flows_v4") as flows:
            return sum(len(keys) // flows.key_size for keys, _ in flows.batches())
    except DatapathError:
        return 0


def _is_attached(services: Services) -> bool:
    return bool(list(pin_directory(BPFFS, services.site.instance).parent.glob("link-*")))


def wait_for(condition: Callable[[], bool], what: str) -> float:
    """When it came true, `time.monotonic()`."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        expect(time.monotonic() < deadline, what)
        time.sleep(0.01)
    return time.monotonic()


if __name__ == "__main__":
    given = dict(zip(("clients", "rate"), map(int, sys.argv[1:3]), strict=False))
    found = measure(given.get("clients", CLIENTS), given.get("rate", RATE))
    print(json.dumps(dataclasses.asdict(found), indent=1))
