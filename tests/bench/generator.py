"""The generator: paced frames of many clients, from a program that runs as live-frame test runs."""

import random
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from relayctl.datapath.libbpf import Program
from tests.bench import bpf
from tests.bench.rig import GENERATOR_CPU, Rig, on_cpu
from tests.bench.wire import FIRST_CLIENT, Frame, words

STRIDE = 0x9E3779B1  # odd: visits every client, far from the one before
BURST_NS = 20_000  # frames that fall into this time go together
LARGEST_BURST = 64

_FRAME = struct.Struct("=QQ104s")
_PLAN = struct.Struct("=QQIIIIII")
_PROGRESS = struct.Struct("=QQQQII")
_ONLY = bytes(4)


@dataclass(frozen=True)
class Sent:
    """What a run of the generator did."""

    frames: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.frames / self.seconds if self.seconds else 0.0


class Generator:
    """Frames of one leg, or of both in turn. Legs: (frame, interface it leaves by)."""

    def __init__(
        self,
        rig: Rig,
        legs: Sequence[tuple[Frame, str]],
        tokens: Sequence[bytes] = (),
        token_at: int = 0,
    ) -> None:
        longest = max(len(frame.data) for frame, _ in legs)
        self._data = max((frame.data for frame, _ in legs), key=len)
        described = " ".join(
            f"L({i}, {f.head}, {f.client_at}, {f.port_at}, {f.sum_at}, {f.ip_sum_at}, "
            f"{f.stamp_at}, {longest - len(f.data)})"
            for i, (f, _) in enumerate(legs)
        )
        defines = [f"LEGS(L)={described}", f"ONLY_LEG={0 if len(legs) == 1 else -1}"]
        if tokens:
            defines.append(f"TOKEN_AT={token_at}")
        self._compiled = bpf.Compiled(bpf.source("generator.c"), "generate", defines)
        for i, (frame, interface) in enumerate(legs):
            packed = _FRAME.pack(frame.sum, frame.ip_sum, frame.data[: min(104, len(frame.data))])
            self._compiled.map("frames").update(_index(i), packed)
            write = partial(self._compiled.map("wires").update, _index(i))
            rig.node_of(interface).call(partial(write, _index(rig.ifindex(interface))))
        if tokens:
            keys = b"".join(_index(i) for i in range(len(tokens)))
            values = b"".join(token + struct.pack("=Q", words(token)) for token in tokens)
            self._compiled.map("tokens").update_batch(keys, values)

    @property
    def program(self) -> Program:
        return self._compiled.program

    def send(
        self,
        count: int,
        *,
        rate: float | None,
        flows: int,
        probes: int = 0,
        in_order: bool = False,
        first: int | None = None,
        burst: int | None = None,
    ) -> Sent:
        """Send `count` frames at `rate` a second (None: as fast as it goes) from `flows` clients.

        `probes`: one frame in so many (a power of 2) carries the time. Blocks meanwhile.
        """
        if burst is None:
            burst = burst_for(rate)
        interval = 0 if rate is None else round(burst * 1e9 / rate)
        begin = random.randrange(1 << 31) if first is None else first
        stride = 0 if in_order else STRIDE
        plan = _PLAN.pack(count, interval, burst, flows, stride, begin, probes, FIRST_CLIENT)
        self._compiled.map("plans").update(_ONLY, plan)
        self._compiled.map("progress").update(_ONLY, bytes(_PROGRESS.size))
        with on_cpu(GENERATOR_CPU):
            sent = 0
            while sent < count:  # where it has to wait for long it drops instead, and comes back
                missing = -(-(count - sent) // burst) * burst
                bpf.run_live(self._compiled.program, self._data, missing, batch=burst)
                progress = self._compiled.map("progress").lookup(_ONLY) or b""
                _, sent, began, ended, _, _ = _PROGRESS.unpack(progress)
        return Sent(sent, (ended - began) / 1e9 * sent / max(sent - burst, 1))

    def close(self) -> None:
        self._compiled.close()


def burst_for(rate: float | None) -> int:
    """Frames that go together: what falls into `BURST_NS`, up to a quarter of a veth's ring."""
    if rate is None:
        return LARGEST_BURST
    return max(1, min(LARGEST_BURST, round(rate * BURST_NS / 1e9)))


def _index(number: int) -> bytes:
    return number.to_bytes(4, sys.byteorder)
