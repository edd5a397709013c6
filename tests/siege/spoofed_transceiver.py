"""Somebody outside sends as a transceiver does: its source, its header, our inner address.

An inner-leg packet counts on inner interfaces alone, whatever it says of itself.
"""

import socket
import time
from functools import partial

from relayctl.reason import Reason
from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.figures.measurement import Findings, Measurement, expect
from tests.kernel.packets import frame, spp_header
from tests.lab import relay_counts
from tests.lab.service_config import Datapath
from tests.report import Target, Value
from tests.siege.newcomers import Echo, Newcomers
from tests.siege.stage import ATTACKERS_END, Stage, stage

TRIES = 1000
DATAPATHS: tuple[Datapath, ...] = ("xdp", "socket")

_RATE = 2000.0
_LATE_S = 0.3


def measurements(quick: bool) -> list[Measurement]:
    tries = 100 if quick else TRIES
    return [
        Measurement(
            f"spoofed_transceiver_{datapath}", targets(datapath), partial(measure, datapath, tries)
        )
        for datapath in DATAPATHS
    ]


def targets(datapath: Datapath) -> tuple[Target, ...]:
    delivered = Target(f"spoofed_transceiver_delivered_{datapath}", "=", 0, "packets")
    read = Target("spoofed_transceiver_read", "=", 0, "packets")  # the socket datapath reads all
    return (delivered, read) if datapath == "xdp" else (delivered,)


def measure(datapath: Datapath, tries: int) -> Findings:
    with stage(datapath) as scene:
        echo = Echo(scene.site.transceiver, scene.site.endpoint[0])
        with echo, Newcomers(scene.site, scene.services.setup.key, echo.address, 1) as client:
            expect(client.connect() and all(client.talk()), "the client's flow does not work")
            header = spp_header(client.addresses[0], scene.site.vip)
            relay = (scene.site.relay_inner, spp.PORT_BASE + 1)
            for number in range(tries):
                echo.send(header + _payload(b"honest", number), relay)
                time.sleep(1 / _RATE)
            honest = _heard(client.sockets[0], b"honest")
            expect(honest == tries, f"{honest} of {tries} arrived from inside")
            before = relay_counts.settled(scene.services)
            _spoof(scene, echo.address, relay, header, tries)
            delivered = _heard(client.sockets[0], b"spoofed")
            counted = relay_counts.settled(scene.services).since(before)
    refused = counted.reasons[Reason.DROP_WRONG_SIDE]
    expect(refused + delivered == tries, f"{refused} of {tries} came to the relay")
    values: dict[str, Value] = {f"spoofed_transceiver_delivered_{datapath}": delivered}
    if datapath == "xdp":
        values["spoofed_transceiver_read"] = counted.received + counted.socket_drops
    return Findings(values, {"tries": tries, "counted": counted.nonzero()})


def _spoof(scene: Stage, endpoint: Address, relay: Address, header: bytes, tries: int) -> None:
    with scene.attacker.capture(ATTACKERS_END) as wire:
        for number in range(tries):
            payload = header + _payload(b"spoofed", number)
            wire.send(frame(endpoint, relay, payload, macs=scene.macs))
            time.sleep(1 / _RATE)
    time.sleep(_LATE_S)


def _payload(name: bytes, number: int) -> bytes:
    return b"\x80\x6f" + number.to_bytes(2, "big") + bytes(8) + name


def _heard(sock: socket.socket, name: bytes) -> int:
    """Different datagrams of that name, of what has arrived."""
    found = set()
    sock.settimeout(_LATE_S)
    try:
        while True:
            data = sock.recv(2048)
            if data.endswith(name):
                found.add(data)
    except TimeoutError:
        return len(found)
