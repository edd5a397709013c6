"""The transceiver, which tells on SIGUSR1 what it holds: one line in its log.

    python -m tests.figures.counted_transceiver serve --config t.toml

Nothing else about it is different. See `ask`.
"""

import asyncio
import gc
import json
import signal
import time
from collections import Counter

from tests.lab.program import Program, ProgramError
from transceiver import server
from transceiver.__main__ import main

MODULE = "tests.figures.counted_transceiver"
OBJECTS = ("Call", "Agent", "DtlsTransport", "Association", "Media", "Echo", "Task")
MARK = "holds: "
_PATIENCE_S = 5.0


class CountedTransceiver(server.Transceiver):
    async def start(self) -> None:
        await super().start()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self._tell)

    def _tell(self) -> None:
        gc.collect()
        alive = Counter(type(each).__name__ for each in gc.get_objects())
        held = {
            "calls": len(self.calls),
            "mux_entries": len(self.mux.table),
            "tasks": len(asyncio.all_tasks()),
            **{f"{name} objects": alive[name] for name in OBJECTS},
        }
        print(MARK + json.dumps(held), flush=True)


def ask(program: Program) -> dict[str, int]:
    """What the running `program` holds now, open descriptors too. Raises `ProgramError`."""
    told = _answers(program)
    descriptors = program.descriptors()
    program.process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + _PATIENCE_S
    while len(answers := _answers(program)) == len(told):
        if time.monotonic() > deadline:
            raise ProgramError(f"{program.name} does not tell what it holds\n{program.tail()}")
        time.sleep(0.02)
    held: dict[str, int] = json.loads(answers[-1].removeprefix(MARK))
    return {"descriptors": descriptors, **held}


def _answers(program: Program) -> list[str]:
    return [line for line in program.log.read_text().splitlines() if line.startswith(MARK)]


if __name__ == "__main__":
    server.Transceiver = CountedTransceiver  # type: ignore[misc]
    main()
