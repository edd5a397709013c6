"""How much of a call the kernel carries, counted from the moment at which its flow is confirmed.

The share is of the program's counters. It stands only if for the whole call program, packet
process, flow, wire and both ends of the call say the same numbers.
"""

import json
import time
from dataclasses import asdict, dataclass
from typing import Any

from tests.clients.lean_driver import LeanDriver
from tests.demo.ledger import Counted
from tests.demo.watch import RelayWatch
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab.deployment import Deployment, deploy
from tests.lab.frame import MEDIA
from tests.report import Target

SECONDS = 20.0
PATIENCE_S = 5.0  # the packet process tells its numbers once a second
TARGETS = tuple(Target(f"kernel_share_{way}", "≥", 99.5, "%") for way in ("up", "down"))


def measurements() -> list[Measurement]:
    return [Measurement("kernel_share", TARGETS, measure)]


def measure(seconds: float = SECONDS) -> Findings:
    with deploy("xdp", PREFIX, echo="opus", faults=True) as place:
        site = place.site
        status = json.loads(place.services.relayctl("status", "-o", "json").stdout)
        with (
            RelayWatch(place.services, status["datapath"]) as watch,
            LeanDriver.start(site.client, site.calls_url, site.client_host, "--channel") as lean,
        ):
            time.sleep(seconds)
            lean.ask("mute")
            time.sleep(0.3)
            books, counted = _settled(place, watch, lean.report()["calls"][0])
    expect(books.agree, f"the counters disagree: {books}")
    since = counted.since_confirmed
    expect(since is not None, "nobody saw the flow confirmed")
    assert since is not None
    return Findings(
        {
            "kernel_share_up": since.kernel_share(since.up),
            "kernel_share_down": since.kernel_share(since.down),
        },
        {
            "datapath": status["datapath"],
            "since_confirmed": asdict(since),
            "whole": asdict(counted.whole),
            "punts": {"whole": counted.whole.punts, "since_confirmed": since.punts},
            "books": asdict(books),
        },
    )


@dataclass(frozen=True)
class Books:
    """What everybody counted for the whole call, up and down."""

    relay: tuple[int, int]  # program and packet process
    flow: tuple[int, int]
    wire: tuple[int, int]  # at the client's side of the relay
    rtp_wire: tuple[int, int]
    rtp_client: tuple[int, int]
    rtp_transceiver: tuple[int, int]

    @property
    def agree(self) -> bool:
        packets = self.relay == self.flow == self.wire
        return packets and self.rtp_wire == self.rtp_client == self.rtp_transceiver


def _settled(place: Deployment, watch: RelayWatch, call: dict[str, Any]) -> tuple[Books, Counted]:
    """Look until the counters agree, or patience ends. The client is silent."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        books, counted = _look(place, watch, call)
        if books.agree or time.monotonic() > deadline:
            return books, counted
        time.sleep(0.2)


def _look(place: Deployment, watch: RelayWatch, call: dict[str, Any]) -> tuple[Books, Counted]:
    assert place.lab is not None
    far = place.services.call(call["id"]).json()
    wire = place.lab.hop.counters()
    counted = watch.count(far["client"])

    def sent(way: str) -> int:
        return sum(wire[way].get(kind, {}).get("sent", 0) for kind in MEDIA)

    books = Books(
        relay=(counted.whole.up.total, counted.whole.down.total),
        flow=_pair(counted.flow["packets"]),
        wire=(sent("up"), sent("down")),
        rtp_wire=(wire["up"]["rtp"]["sent"], wire["down"]["rtp"]["sent"]),
        rtp_client=(call["sent"], call["received"]),
        rtp_transceiver=_pair(far["packets"]),
    )
    return books, counted


def _pair(packets: dict[str, int]) -> tuple[int, int]:
    return packets["up"], packets["down"]
