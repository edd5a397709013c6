"""Ten thousand hostile datagrams at the VIP: nothing answers, nothing falls, every one is counted.

Program: the sum of its reasons, but for packets that are none of the relay's, is what was sent.
Packet process: what the program handed up is what it read and what its sockets had to drop.
"""

import contextlib
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from relayctl.inspect.records import FIRST_SLOW_REASON
from relayctl.reason import PUNTS, Reason
from tests.clients.lean_driver import LeanDriver
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab import hostile, http
from tests.lab.deployment import Deployment, deploy
from tests.lab.service_config import CLUSTER
from tests.lab.services import Services
from tests.report import Target

COUNT, SEED = 10_000, 20_240
RATE = 1_000.0  # a second
SOURCES = 16  # ports of the client
LATE_S = 1.0  # for answers
PATIENCE_S = 5.0  # the packet process tells its numbers once a second
FORBIDDEN = (("127.0.0.1", 5000), ("10.4.0.2", 8080), ("10.1.0.2", 9), ("224.0.0.1", 5000))
TARGETS = (
    Target("hostile_answered", "=", 0, "frames"),
    Target("hostile_crashed", "=", 0, "programs"),
    Target("hostile_counters_add_up", "=", True),
)

Counts = dict[str, int]


def measurements() -> list[Measurement]:
    return [Measurement("hostile", TARGETS, measure)]


def measure(count: int = COUNT) -> Findings:
    with deploy("xdp", PREFIX) as place:
        before, crashes = _counts(place.services), Crashes(place.services)
        sent, answered = _attack(place, count)
        crashed = crashes.found()
        if crashed:  # there is nobody to ask for counters, and leaving would complain
            place.services.stop(check=False)
            return Findings(
                {"hostile_answered": answered, "hostile_crashed": len(crashed)},
                {"sent": sent, "seed": SEED, "crashed": crashed},
            )
        counted = _settled(place.services, before, sent)
        works, heard = _call(place)
    expect(heard > 0 or not works, "the ear did not even hear a call that worked")
    return Findings(
        {
            "hostile_answered": answered,
            "hostile_crashed": int(not works),
            "hostile_counters_add_up": add_up(counted, sent),
        },
        {
            "sent": sent,
            "seed": SEED,
            "counted": {name: n for name, n in counted.items() if n},
            "call_after": works,
        },
    )


def add_up(counted: Mapping[str, int], sent: int) -> bool:
    program, process = _sums(counted)
    punted = sum(counted.get(reason.label, 0) for reason in PUNTS)
    read = counted["socket_received"]
    return program == sent and punted == read + counted["socket_drops"] and process == read


def _sums(counted: Mapping[str, int]) -> tuple[int, int]:
    """Packets counted by the program, and by the packet process."""
    program = [each for each in Reason if Reason.PASS_NOT_OURS < each < FIRST_SLOW_REASON]
    process = [each for each in Reason if each >= FIRST_SLOW_REASON]
    return (
        sum(counted.get(reason.label, 0) for reason in program),
        sum(counted.get(reason.label, 0) for reason in process),
    )


def _attack(place: Deployment, count: int) -> tuple[int, int]:
    """How many datagrams went out, and how many frames came to the client."""
    site = place.site
    target = hostile.Target(place.services.setup.key, CLUSTER, site.endpoint, FORBIDDEN, site.vip)
    answers = 0
    with contextlib.ExitStack() as stack:
        ear = stack.enter_context(_ear(place))
        sources = [stack.enter_context(site.client.udp(site.client_host)) for _ in range(SOURCES)]
        began = time.monotonic()
        for number, datagram in enumerate(hostile.datagrams(SEED, count, target)):
            time.sleep(max(0.0, began + number / RATE - time.monotonic()))
            sources[number % SOURCES].sendto(datagram.payload, site.vip)
            answers += _heard(ear)
        time.sleep(LATE_S)
        answers += _heard(ear)
    return count, answers


@contextlib.contextmanager
def _ear(place: Deployment) -> Iterator[socket.socket]:
    with place.site.client.capture("eth0") as ear:
        ear.setblocking(False)
        yield ear


def _heard(ear: socket.socket) -> int:
    """Frames for the client with an IPv4 packet in them, of whatever protocol."""
    incoming = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            frame, (_, protocol, kind, *_) = ear.recvfrom(64)
            incoming += kind != socket.PACKET_OUTGOING and protocol == 0x0800 and bool(frame)
    return incoming


def _settled(services: Services, before: Counts, sent: int) -> Counts:
    """What was counted since `before`, once it adds up or patience ends."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        now = _counts(services)
        counted = {
            name: n - before.get(name, 0) for name, n in now.items() if n != before.get(name)
        }
        counted = {"socket_received": 0, "socket_drops": 0, **counted}
        if add_up(counted, sent) or time.monotonic() > deadline:
            return counted
        time.sleep(0.3)


def _counts(services: Services) -> Counts:
    """All counters of the relay by name."""
    site = services.site
    text = http.request(site.relay, f"{site.admin_url}/metrics").text
    counts: Counts = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "ferryline_relay_packets_total":
                counts[sample.labels["reason"]] = int(sample.value)
            elif sample.name in _SOCKET_COUNTERS:
                counts[_SOCKET_COUNTERS[sample.name]] = int(sample.value)
    return counts


_SOCKET_COUNTERS = {
    "ferryline_relay_socket_received_total": "socket_received",
    "ferryline_relay_socket_drops_total": "socket_drops",
}


class Crashes:
    """Programs that ended, began anew or wrote a traceback since this was made."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tracebacks = dict(self._read_logs())
        self._packet_process = self._status()["packet_process_pid"]

    def found(self) -> list[str]:
        programs = self._services.programs
        crashed = [name for name, program in programs.items() if not program.running]
        if not crashed and self._status()["packet_process_pid"] != self._packet_process:
            crashed.append("packet process")
        crashed += [
            f"{name}: traceback"
            for name, tracebacks in self._read_logs()
            if tracebacks > self._tracebacks[name]
        ]
        return crashed

    def _read_logs(self) -> Iterator[tuple[str, int]]:
        for name, program in self._services.programs.items():
            yield name, program.log.read_text(errors="replace").count("Traceback")

    def _status(self) -> dict[str, Any]:
        site = self._services.site
        status: dict[str, Any] = http.request(site.relay, f"{site.admin_url}/v1/status").json()
        return status


def _call(place: Deployment) -> tuple[bool, int]:
    """Does a call still work, and what does the ear hear of it?"""
    site = place.site
    with (
        _ear(place) as ear,
        LeanDriver.start(site.client, site.calls_url, site.client_host) as lean,
    ):
        time.sleep(1)
        (call,) = lean.stop()["calls"]
        heard = _heard(ear)
    works = call["error"] is None and call["received"] > 25 and call["lost"]["up"] == 0
    return works, heard
