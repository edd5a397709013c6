"""Coverage-guided fuzzing of one parser:

    python -m tests.fuzz.codecs sdp_offer --seconds 60

The parsers and what has to hold for them stand in `tests.fuzz.targets`. An input that raises what
is not documented is kept in build/fuzz as `<parser>-crash-<hash>` and ends the run; the same
command with `--input <file>` runs it again.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console

from tests.lab.node import REPOSITORY

OUTPUT = REPOSITORY / "build" / "fuzz"
NAMES = (
    *("relay_stun", "token", "key_file", "spp_header", "payload_class", "address_text", "cluster"),
    *("call_id_text", "inner_datagram", "transceiver_stun", "rtp_packet", "rtcp_compound"),
    "sdp_offer",
)
"""Of every target: naming them here keeps their modules unread until they are instrumented."""

_LONGEST = 4096  # bytes of an input
_START = 120.0  # seconds a fuzzer may need on top, for instrumenting


def run_all(say: Console, seconds: int, parallel: int = 2) -> int:
    """Fuzz each parser for so long; how many of them failed."""
    with ThreadPoolExecutor(parallel) as threads:
        outcomes = list(threads.map(lambda name: _run(name, seconds), NAMES))
    for name, said in zip(NAMES, outcomes, strict=True):
        say.print(f"{name}: {said or 'nothing found'}", markup=False)
    return sum(bool(said) for said in outcomes)


def _run(name: str, seconds: int) -> str:
    """What went wrong, or nothing."""
    command = [sys.executable, "-m", "tests.fuzz.codecs", name, "--seconds", str(seconds)]
    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=seconds + _START
        )
    except subprocess.TimeoutExpired:
        return "it does not come to an end"
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if "rror" in line or "crash-" in line]
    return "; ".join(lines[-3:]) or f"status {done.returncode}"


def fuzz(name: str, seconds: int) -> None:
    """Does not return: the fuzzer ends the process, with status 0 if it found nothing."""
    import atheris  # type: ignore[import-untyped] # only who fuzzes needs it

    with atheris.instrument_imports(include=["relayctl", "transceiver", "tests.fuzz.targets"]):
        from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    corpus = OUTPUT / "corpus" / name  # it grows from run to run
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    options = [
        str(corpus),
        f"-max_total_time={seconds}",
        f"-max_len={_LONGEST}",
        f"-artifact_prefix={OUTPUT}/{name}-",
        "-timeout=10",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options], target.run)
    atheris.Fuzz()


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.codecs")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--input", type=Path, help="run this one input instead")
    options = parser.parse_args(argv)
    if options.input:
        from tests.fuzz.targets import TARGETS

        TARGETS[options.name].run(options.input.read_bytes())
    else:
        fuzz(options.name, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
