"""One client's steady stream, thousands of packets a second, and its count where it arrives.

It is made by the generator of floods from the address of a client that has a flow, so the relay
carries it as it carries any call.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from relayctl.datapath.libbpf import DRIVER_MODE, Link
from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.bench import bpf
from tests.figures.measurement import expect
from tests.kernel.packets import spp_header
from tests.lab.node import Node
from tests.siege import flood
from tests.siege.flood import Flood
from tests.siege.newcomers import MEDIA, Echo, Newcomers
from tests.siege.stage import ATTACKERS_END, Stage

MARK = b"the sink"
PAYLOAD = b"\x80\x6f" + bytes(10) + MARK + bytes(80)

_MARK_AT = 14 + 20 + 8 + 38 + PAYLOAD.index(MARK)  # behind the Simple Proxy Protocol header
_SEEN = struct.Struct("=QQ")
_ONLY = bytes(4)
_TRIAL, _TRIAL_S = 100_000, 0.5  # packets at the full rate, seconds at others
_BURST_NS = 20_000  # packets of this time go together


@dataclass(frozen=True)
class Seen:
    right: int
    stale: int  # sent to a MAC address that was no longer wanted

    @property
    def packets(self) -> int:
        return self.right + self.stale


class Sink:
    """Counts the stream on an interface of `node`. A context manager."""

    def __init__(self, node: Node, interface: str) -> None:
        mark = int.from_bytes(MARK, "little")
        text = (flood.HERE / "sink.c").read_text()
        self._compiled = bpf.Compiled(text, "sink", [f"MARK_AT={_MARK_AT}", f"MARK={mark:#x}ull"])
        index = node.netlink(lambda ip: ip.link_lookup(ifname=interface)[0])
        program = self._compiled.program
        self._link = node.call(lambda: Link.attach_xdp(program, index, DRIVER_MODE))

    def __enter__(self) -> "Sink":
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()
        self._compiled.close()

    def want(self, mac: bytes) -> None:
        """From now on only packets to this MAC address are right."""
        self._compiled.map("wanted").update(_ONLY, mac + bytes(2))

    def seen(self) -> Seen:
        values = map(_SEEN.unpack, self._compiled.map("seen").lookup_per_cpu(_ONLY))
        return Seen(*(sum(column) for column in zip(*values, strict=True)))


@dataclass(frozen=True)
class Stream:
    """The client of the stream, what sends it and what counts it."""

    client: Address
    source: Flood
    sink: Sink

    def lossless_rate(self) -> float:
        """A rate at which everything arrives: the first of the full one, half of it, …"""
        rate: float | None = None
        for _ in range(8):
            before = self.sink.seen()
            count = _TRIAL if rate is None else round(rate * _TRIAL_S)
            sent = self.source.send(count=count, rate=rate, burst=burst_for(rate))
            if self.sink.seen().packets - before.packets == sent.frames:
                return sent.rate
            rate = sent.rate / 2
        raise RuntimeError(f"packets are lost even at {rate:.0f} a second")


@contextmanager
def stream(scene: Stage, echo: Echo, node: Node, interface: str) -> Iterator[Stream]:
    """A stream through the relay to `echo`, counted on `interface` of `node`."""
    with Newcomers(scene.site, scene.services.setup.key, echo.address, 1) as client:
        expect(client.connect() and all(client.talk()), "the client of the stream has no flow")
        (address,) = client.addresses
        header = spp_header(address, scene.site.vip)
        echo.keep_sending(header + MEDIA, (scene.site.relay_inner, spp.PORT_BASE))
        shapes = flood.from_client(scene.macs, address, scene.site.vip, PAYLOAD)
        with (
            Sink(node, interface) as sink,
            Flood(scene.attacker, ATTACKERS_END, shapes, sources=1, first=address[0]) as source,
        ):
            yield Stream(address, source, sink)


def burst_for(rate: float | None) -> int:
    if rate is None:
        return flood.BURST
    return max(1, min(flood.BURST, round(rate * _BURST_NS / 1e9)))
