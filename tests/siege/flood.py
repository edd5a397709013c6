"""A flood: frames of a few shapes from up to a million sources, out of one end of a cable.

They are sent by a BPF program on one core, as live-frame test runs: millions a second where nothing
holds it back. UDP checksums are 0, which IPv4 allows.
"""

import contextlib
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from relayctl.wire.address import Address
from tests.bench import bpf
from tests.kernel.packets import frame
from tests.lab.hostile import binding_request
from tests.lab.node import Node

SOURCES = "60.0.0.0"
MILLION = 1 << 20
CPU = 0
LIMIT_S = 60.0  # a flood ends by itself

HERE = Path(__file__).parent
_IP = 14  # offset
_STEADY_NICE = -10  # of a steady rate, which has to be on time
BURST = 64
_TURN, _TURN_S = 1 << 17, 0.5  # frames, or seconds of a steady rate, to a run: its end takes 30 ms
_SHAPE = struct.Struct("=QIIII")
_PLAN = struct.Struct("=QQIIII")
_PROGRESS = struct.Struct("=QQQII")
_ONLY = bytes(4)
_HEAD = b"IQ"  # how the text of a token begins: version 1, key 1


@dataclass(frozen=True)
class Shape:
    """A frame, and offsets in it of what is made up anew each time; 0 = nothing."""

    frame: bytes
    port_at: int = 0  # source port
    text_at: int = 0  # 16 letters
    noise_at: int = 0  # 8 bytes

    def pack(self) -> bytes:
        header = bytearray(self.frame[_IP : _IP + (self.frame[_IP] & 15) * 4])
        header[10:16] = bytes(6)  # checksum and source
        words = sum(word for (word,) in struct.iter_unpack("=H", header))
        padded = self.frame + bytes(-len(self.frame) % 8)
        return _SHAPE.pack(words, self.port_at, self.text_at, self.noise_at, 0) + padded


@dataclass(frozen=True)
class Sent:
    frames: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.frames / self.seconds if self.seconds else 0.0


class Flood:
    """`shapes` take turns and have one length. `sources`: how many, a power of two; 1 leaves them
    the address `first`. A context manager."""

    def __init__(
        self,
        node: Node,
        interface: str,
        shapes: Sequence[Shape],
        *,
        sources: int = MILLION,
        first: str = SOURCES,
    ) -> None:
        self._frame = shapes[0].frame
        if {len(shape.frame) for shape in shapes} != {len(self._frame)}:
            raise ValueError("the shapes of a flood have one length")
        defines = [f"SIZE={len(self._frame)}", f"SHAPES={len(shapes)}"]
        self._compiled = bpf.Compiled((HERE / "flood.c").read_text(), "flood", defines)
        for index, shape in enumerate(shapes):
            self._compiled.map("shapes").update(_index(index), shape.pack())
        port = node.netlink(lambda ip: ip.link_lookup(ifname=interface)[0])
        node.call(lambda: self._compiled.map("wires").update(_ONLY, _index(port)))
        base = int.from_bytes(bytes(map(int, first.split("."))), "big")
        self._sources = base, sources - 1
        self._stop = threading.Event()

    def __enter__(self) -> "Flood":
        return self

    def __exit__(self, *_: object) -> None:
        self._compiled.close()

    def send(
        self,
        *,
        seconds: float = LIMIT_S,
        count: int | None = None,
        rate: float | None = None,
        burst: int = BURST,
    ) -> Sent:
        """Send for `seconds` or `count` frames, `rate` a second (None: as fast as it goes). Blocks;
        `stop` from another thread ends it."""
        interval = round(burst * 1e9 / rate) if rate else 0
        limit = count if count is not None else 1 << 62
        plan = _PLAN.pack(limit, interval, burst, *self._sources, 0)
        self._compiled.map("plans").update(_ONLY, plan)
        self._compiled.map("progress").update(
            _ONLY, _PROGRESS.pack(0, 0, random.getrandbits(63) | 1, 0, 0)
        )
        began, sent = time.monotonic(), 0
        turn = _TURN if rate is None else max(burst, round(rate * _TURN_S))
        with _on_cpu(CPU, _STEADY_NICE if rate else 0):
            while sent < limit and not self._stop.is_set() and time.monotonic() < began + seconds:
                bpf.run_live(self._compiled.program, self._frame, turn, batch=burst)
                sent = self.sent()
        return Sent(sent, time.monotonic() - began)

    def sent(self) -> int:
        found = self._compiled.map("progress").lookup(_ONLY) or bytes(_PROGRESS.size)
        return int(_PROGRESS.unpack(found)[0])

    @contextlib.contextmanager
    def going_on(self, rate: float | None = None, burst: int = BURST) -> Iterator[list[Sent]]:
        """Send meanwhile; what was sent is in the list at the end."""
        self._stop.clear()
        done: list[Sent] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                done.append(self.send(rate=rate, burst=burst))
            except BaseException as error:  # handed to the caller, whatever it is
                errors.append(error)

        thread = threading.Thread(target=run, name="flood")
        thread.start()
        try:
            yield done
        finally:
            self._stop.set()
            thread.join()
        if errors:
            raise errors[0]


def forged(macs: tuple[bytes, bytes], vip: Address) -> list[Shape]:
    """Tokens that nobody made, and as much random UDP that begins as RTP, DTLS or STUN does."""
    source = random.Random(7)
    request = binding_request(source, _HEAD + b"x" * 22 + b":abcdefghijk")
    text_at = request.index(_HEAD + b"x") + len(_HEAD)
    shapes = []
    for head in (b"\x80\x6f", b"\x16\xfe\xfd", b"\x80\xc8", b"\x40", b"\x01\x01"):
        token = Shape(_frame(macs, vip, request), 34, 42 + text_at)
        noise = head + source.randbytes(len(request) - len(head))
        shapes += [token, Shape(_frame(macs, vip, noise), 34, noise_at=42 + 8)]
    return shapes


def copies(macs: tuple[bytes, bytes], vip: Address, payload: bytes) -> list[Shape]:
    """The same datagram from everywhere."""
    return [Shape(_frame(macs, vip, payload), 34)]


def odd(macs: tuple[bytes, bytes], vip: Address) -> list[Shape]:
    """Fragments, IP options, a time to live of 1: all things that only the kernel can read."""
    payload = b"\x80\x6f" + bytes(98)
    first = frame((SOURCES, 40000), vip, payload, macs=macs, sum=0, fragment=0x2000)
    later = frame((SOURCES, 40000), vip, payload, macs=macs, sum=0, fragment=0x2000 | 16)
    options = frame((SOURCES, 40000), vip, payload[:-4], macs=macs, sum=0, options=b"\x01" * 4)
    last_hop = frame((SOURCES, 40000), vip, payload, macs=macs, sum=0, ttl=1)
    return [Shape(first), Shape(later), Shape(options), Shape(last_hop)]


def sources_of_rtp(macs: tuple[bytes, bytes], vip: Address) -> list[Shape]:
    """RTP of SSRCs that nobody has."""
    rtp = struct.pack("!BBHII", 0x80, 111, 7, 960, 0) + bytes(80)
    return [Shape(_frame(macs, vip, rtp), 34, noise_at=42 + 8)]


def from_client(
    macs: tuple[bytes, bytes], client: Address, vip: Address, payload: bytes
) -> list[Shape]:
    """One client's own stream; for a flood of one source, which is the client's."""
    return [Shape(frame(client, vip, payload, macs=macs, sum=0))]


def _frame(macs: tuple[bytes, bytes], vip: Address, payload: bytes) -> bytes:
    return frame((SOURCES, 0), vip, payload, macs=macs, sum=0)


@contextlib.contextmanager
def _on_cpu(cpu: int, nice: int) -> Iterator[None]:
    """This thread runs there, before or beside the others."""
    thread, before = threading.get_native_id(), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    os.setpriority(os.PRIO_PROCESS, thread, nice)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, thread, 0)
        os.sched_setaffinity(0, before)


def _index(number: int) -> bytes:
    return number.to_bytes(4, sys.byteorder)
