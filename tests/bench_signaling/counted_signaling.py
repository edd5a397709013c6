"""Signaling, which tells on SIGUSR1 what it holds: one line in its log.

    python -m tests.bench_signaling.counted_signaling serve --config s.toml

Nothing else about it is different. Asked by `tests.figures.counted_transceiver.ask`.
"""

import asyncio
import gc
import json
import signal
from collections import Counter
from types import FrameType

from signaling.__main__ import main
from tests.figures.counted_transceiver import MARK

MODULE = "tests.bench_signaling.counted_signaling"
OBJECTS = ("Http", "Request", "Task", "_Connection")


def tell(number: int, frame: FrameType | None) -> None:
    gc.collect()
    alive = Counter(type(each).__name__ for each in gc.get_objects())
    held = {
        "tasks": len(asyncio.all_tasks(asyncio.get_running_loop())),
        **{f"{name} objects": alive[name] for name in OBJECTS},
    }
    print(MARK + json.dumps(held), flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, tell)
    main()
