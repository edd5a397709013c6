"""The transceiver with a sampler inside: on whose line is the process while it uses the CPU?

    python -m tests.bench_media.sampled OUTPUT serve --config …

SIGUSR1 begins, SIGUSR2 writes OUTPUT as JSON: {"file:function:line": samples}. A sample is the
innermost Python line at a tick of the process's own CPU time; a call into C counts for the line
that makes it, and the event loop, which has no line, for the outermost one.
"""

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from transceiver.cli import cli

_EVERY_S = 0.001  # of CPU time; the kernel looks at its own ticks only, 4 ms as a rule


class Sampler:
    def __init__(self, output: Path) -> None:
        self._output = output
        self._seen: Counter[str] = Counter()

    def install(self) -> None:
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(signal.SIGUSR1, self._begin)
        signal.signal(signal.SIGUSR2, self._end)

    def _sample(self, number: int, frame: FrameType | None) -> None:
        if frame is not None:
            code = frame.f_code
            self._seen[f"{code.co_filename}:{code.co_name}:{frame.f_lineno or 0}"] += 1

    def _begin(self, number: int, frame: FrameType | None) -> None:
        self._seen.clear()
        signal.setitimer(signal.ITIMER_PROF, _EVERY_S, _EVERY_S)

    def _end(self, number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._output.write_text(json.dumps(self._seen))


if __name__ == "__main__":
    output, *arguments = sys.argv[1:]
    Sampler(Path(output)).install()
    cli(arguments, prog_name="transceiver")
