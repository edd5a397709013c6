"""Where the time of a packet goes in echo and in mirror, and that of a set-up; by stage and line.

    python -m tests.bench_media.profile [--echo CALLS] [--mirror CALLS] [--set-ups CALLS]

Shares are samples of the process's CPU time (see `sampled.py`), and µs are these shares of the CPU
time that the process took for each packet that came back, or each set-up. Half of a core's load is
a good number of calls: fewer give fewer samples, more give queues. 0 leaves a table out.
"""

import argparse
import json
import linecache
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import kill
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench_media.rig import DIRECTORY, Rig
from tests.bench_media.step import Bench, bench
from tests.bench_media.subjects import ECHO, MIRROR, Kind
from tests.figures.measurement import expect
from tests.lab.node import REPOSITORY

_PATIENCE_S = 5.0
_LINES = 12  # shown

# By what the line says, else by where it stands: the first that fits.
_BY_TEXT = (
    ("recvfrom(", "receive: system call"),
    ("recvmsg", "receive: system call"),
    ("sendto(", "send: system call"),
    ("sendmsg", "send: system call"),
    ("_decode(", "Opus decode"),
    ("_encode(", "Opus encode"),
)
_BY_PLACE = (
    ("pylibsrtp/", "SRTP and DTLS"),
    ("transceiver/srtp.py", "SRTP and DTLS"),
    ("transceiver/dtls.py", "SRTP and DTLS"),
    ("transceiver/flight.py", "SRTP and DTLS"),
    ("transceiver/rtp.py", "RTP parse, build, statistics"),
    ("transceiver/rtcp.py", "RTCP"),
    ("transceiver/audio/opus.py", "codec objects"),
    ("opuslib_next/", "codec objects"),
    ("transceiver/audio/", "uplink: order, gaps, pieces"),
    ("transceiver/backends/", "backend"),
    ("transceiver/media.py", "media: counts, outlet"),
    ("transceiver/stream.py", "call: path, stream"),
    ("transceiver/call.py", "call: path, stream"),
    ("transceiver/reach.py", "call: path, stream"),
    ("transceiver/ice/", "ICE"),
    ("transceiver/wheel.py", "timer wheel"),
    ("transceiver/mux.py", "mux and demux"),
    ("transceiver/demux.py", "mux and demux"),
    ("transceiver/framing.py", "mux and demux"),
    ("relayctl/wire/", "mux and demux"),
    ("OpenSSL/", "SRTP and DTLS"),
    ("aiortc/", "SRTP and DTLS"),
    ("transceiver/sdp", "SDP"),
    ("transceiver/api.py", "HTTP"),
    ("uvicorn/", "HTTP"),
    ("starlette/", "HTTP"),
    ("json/", "HTTP"),
    ("logging/", "log"),
    ("<string>", "named tuples"),
    ("asyncio/", "event loop"),
    ("tests/bench_media/sampled.py", "event loop"),
)


@dataclass(frozen=True)
class Profile:
    """`cost_us` of CPU time for each of what was counted; `lines` are samples by
    "file:function:line"."""

    of: str
    cost_us: float
    lines: Mapping[str, int]


def stage_of(line: str) -> str:
    """The stage that a sampled line belongs to."""
    file, _, number = line.rsplit(":", 2)
    text = linecache.getline(file, int(number))
    for part, stage in _BY_TEXT:
        if part in text and "transceiver/" in file:
            return stage
    for part, stage in _BY_PLACE:
        if part in file:
            return stage
    return "other"


def of_packets(rig: Rig, kind: Kind, calls: int, seconds: float) -> Profile:
    """While calls talk. Raises `MeasurementError` if the process writes no samples."""
    output = DIRECTORY / f"profile-{kind.key}.json"
    with bench(rig, _sampled(kind, output)) as on:
        on.callers.connect(calls).all_there(calls)
        packets, cpu_s = _sample(on, output, lambda: on.callers.talk(seconds)["back"])
    return _profile(output, f"a packet, {calls} calls", packets, cpu_s)


def of_set_ups(rig: Rig, kind: Kind, calls: int) -> Profile:
    """While calls are set up, eight at a time. Raises `MeasurementError`."""
    output = DIRECTORY / "profile-set-ups.json"
    with bench(rig, _sampled(kind, output)) as on:
        on.warm_up()
        made, cpu_s = _sample(on, output, lambda: on.callers.connect(calls, at_once=8).connected)
    return _profile(output, "a set-up", made, cpu_s)


def _sample(on: Bench, output: Path, act: Callable[[], int]) -> tuple[int, float]:
    """What `act` returns, and the CPU seconds of the server meanwhile."""
    output.unlink(missing_ok=True)
    pid = on.subject.pids()[0]
    kill(pid, signal.SIGUSR1)
    before = on.subject.cpu_s()
    count = act()
    cpu_s = on.subject.cpu_s() - before
    kill(pid, signal.SIGUSR2)
    deadline = time.monotonic() + _PATIENCE_S
    while not output.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    on.callers.close()
    return count, cpu_s


def _profile(output: Path, of: str, count: int, cpu_s: float) -> Profile:
    expect(output.exists(), f"the server wrote no samples of {of}")
    return Profile(of, cpu_s / max(1, count) * 1e6, json.loads(output.read_text()))


def _sampled(kind: Kind, output: Path) -> Kind:
    def argv(address: str, token: str) -> list[str]:
        python, _, _, *arguments = kind.argv(address, token)  # python -m transceiver …
        return [python, "-m", "tests.bench_media.sampled", str(output), *arguments]

    return replace(kind, argv=argv)


def stages(found: Profile) -> list[tuple[str, float, float]]:
    """Stage, share and µs, the dearest first."""
    total = max(1, sum(found.lines.values()))
    by_stage: Counter[str] = Counter()
    for line, samples in found.lines.items():
        by_stage[stage_of(line)] += samples
    return [
        (stage, samples / total, samples / total * found.cost_us)
        for stage, samples in by_stage.most_common()
    ]


def _show(say: Console, kind: Kind, found: Profile) -> None:
    samples = sum(found.lines.values())
    title = f"{kind.name}: {found.cost_us:,.0f} µs {found.of}; {samples} samples"
    table = Table("stage", "share", "µs", title=title, title_justify="left")
    for stage, share, us in stages(found):
        table.add_row(stage, f"{share:.1%}", f"{us:.1f}")
    table.add_section()
    for line, count in Counter(found.lines).most_common(_LINES):
        file, function, number = line.rsplit(":", 2)
        place = f"{file.removeprefix(f'{REPOSITORY}/')}:{number} {function}"
        us = count / max(1, samples) * found.cost_us
        table.add_row(place, f"{count / max(1, samples):.1%}", f"{us:.1f}")
    say.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.bench_media.profile", description=__doc__)
    parser.add_argument("--echo", type=int, default=25, metavar="CALLS")
    parser.add_argument("--mirror", type=int, default=150, metavar="CALLS")
    parser.add_argument("--set-ups", type=int, default=400, metavar="CALLS")
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    with Rig() as rig:
        for kind, calls in ((ECHO, arguments.echo), (MIRROR, arguments.mirror)):
            if calls:
                _show(say, kind, of_packets(rig, kind, calls, arguments.seconds))
        if arguments.set_ups:
            _show(say, ECHO, of_set_ups(rig, ECHO, arguments.set_ups))


if __name__ == "__main__":
    main()
