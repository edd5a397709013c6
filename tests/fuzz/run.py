"""`make fuzz`: does the XDP program do what the Python model says, for a million frames?

    python -m tests.fuzz.run [--frames 1000000] [--seed 1] [--seconds 60]
    python -m tests.fuzz.run --replay build/fuzz/found-1.txt

One process per CPU plays scenes through both and compares verdict, bytes, reason and flows. What
differs is made as small as it gets and kept in build/fuzz. Then the parsers of hostile input are
fuzzed by coverage, `--seconds` each (0: not at all). Writes build/fuzz/report.json; with fewer
frames than a million, partial.json. Ends with status 1 when a target is missed.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from relayctl.reason import Reason
from tests import report
from tests.fuzz import codecs
from tests.fuzz.worker import Arena, Progress, drain, work
from tests.lab import namespace
from tests.lab.node import REPOSITORY
from tests.oracle.compare import PROGRAM_REASONS
from tests.oracle.kernel import place
from tests.oracle.scene import read, to_line
from tests.report import Target, Value

OUTPUT = REPOSITORY / "build" / "fuzz"
FRAMES = 1_000_000
_STALL = 120.0  # seconds without a report after which a worker is given up

DISAGREEMENTS = "oracle against kernel: disagreements"
COMPARED = "frames compared"
REACHED = "reasons of the program reached"
CRASHES = "parser inputs that raised what is not documented"


def targets(frames: int, seconds: int) -> list[Target]:
    """What was asked for: so many frames, and parsers if they get any time."""
    parsers = [Target(CRASHES, "=", 0)] if seconds else []
    return [
        Target(COMPARED, "≥", frames, "frames"),
        Target(DISAGREEMENTS, "=", 0, "frames"),
        Target(REACHED, "=", len(PROGRAM_REASONS)),
        *parsers,
    ]


def compare(say: Console, frames: int, seed: int) -> Progress:
    """Share the frames among the CPUs; the sum of what all workers report."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    cpus = sorted(os.sched_getaffinity(0))
    share = -(-frames // len(cpus))
    workers = [
        context.Process(target=work, args=(cpu, share, seed * 1000 + cpu, results), daemon=True)
        for cpu in cpus
    ]
    for worker in workers:
        worker.start()
    total = Progress()
    began = time.monotonic()
    running = len(workers)
    told = 0
    with say.status("compiling …") as status:
        while running:
            progress = drain(results, _STALL)
            if progress is None:
                total.error = f"no worker reported for {_STALL:.0f} s"
                break
            running -= progress.is_last
            _add(total, progress)
            rate = total.frames / (time.monotonic() - began)
            line = f"{total.frames:,} frames, {rate:,.0f} a second, {total.disagreements} differ"
            status.update(line)
            if not say.is_terminal and total.frames >= told + frames // 10:
                told = total.frames  # a log shows no status
                say.print(line)
    for worker in workers:
        worker.join(timeout=_STALL if running == 0 else 1)
        worker.kill()
    return total


def _add(total: Progress, progress: Progress) -> None:
    total.reached += progress.reached
    total.disagreements += progress.disagreements
    total.found += progress.found
    total.error = total.error or progress.error


def keep(say: Console, total: Progress) -> None:
    """Write each kind of disagreement to a file of its own, and how to see it again."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for old in OUTPUT.glob("found-*.txt"):
        old.unlink()
    for number, (scene, told) in enumerate(total.found, 1):
        path = OUTPUT / f"found-{number}.txt"
        comment = "".join(f"# {line}\n" for line in told.splitlines())
        path.write_text(f"{comment}{to_line(scene)}\n")
        say.print(told, markup=False)
        say.print(f"  python -m tests.fuzz.run --replay {path.relative_to(REPOSITORY)}\n")


def replay(say: Console, path: Path) -> int:
    """Play the scenes of a file again and say what differs."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    differ = 0
    with place() as bpffs, ExitStack() as cleaning:
        arena = Arena(bpffs, cleaning)
        for scene in read(path.read_text()):
            found = arena.play(scene)
            differ += found is not None
            say.print(str(found or "they agree"), markup=False)
    return 1 if differ else 0


def _table(reached: Counter[Reason]) -> Table:
    rows = Table("reason", "frames", title="Frames compared, by reason", title_justify="left")
    for reason in PROGRAM_REASONS:
        rows.add_row(reason.label, f"{reached[reason]:,}")
    return rows


def _values(total: Progress) -> Iterator[tuple[str, Value]]:
    if total.error:
        return
    yield COMPARED, total.frames
    yield DISAGREEMENTS, total.disagreements
    yield REACHED, len(total.reached)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description="oracle against kernel")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 20))
    parser.add_argument("--seconds", type=int, default=60, help="of fuzzing for each parser")
    parser.add_argument("--replay", type=Path)
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # workers, and what they made, go too
    say = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    if refused := namespace.unavailable():
        say.print(f"fuzz: {refused}", style="red", markup=False)
        return 1
    if options.replay:
        return replay(say, options.replay)

    say.print(f"seed {options.seed}")
    total = compare(say, options.frames, options.seed)
    say.print(_table(total.reached))
    keep(say, total)
    if total.error:
        say.print(total.error, style="red", markup=False)
    values = dict(_values(total))
    if options.seconds:
        values[CRASHES] = codecs.run_all(say, options.seconds)
    results = report.judge(targets(options.frames, options.seconds), values)
    is_whole = options.frames >= FRAMES and options.seconds
    path = OUTPUT / ("report.json" if is_whole else "partial.json")
    command = f"make fuzz FRAMES={options.frames} SEED={options.seed} SECONDS={options.seconds}"
    reached = {reason.label: total.reached[reason] for reason in PROGRAM_REASONS}
    report.write(path, command, results, reached=reached, seed=options.seed, error=total.error)
    say.print(report.table("The model against the program", results))
    ok = all(result.ok for result in results)
    say.print(f"{'all good' if ok else 'FAILED'}; {path.relative_to(REPOSITORY)}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
