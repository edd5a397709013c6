import asyncio
import logging
from collections.abc import Iterator

import pytest

from relayctl.control.packet_child import PacketProcessError
from relayctl.control.watchdog import HUNG_S, MAX_PAUSE_S, Watchdog


class Child:
    """A packet process whose silences a test lists, look by look."""

    def __init__(self, silences: Iterator[float]) -> None:
        self.pid = 100
        self.killed_at: list[int] = []
        self.looks = 0
        self.starts = True
        self._silences = silences

    def silent_s(self) -> float:
        self.looks += 1
        try:
            return next(self._silences)
        except StopIteration:
            raise asyncio.CancelledError from None

    async def replace(self) -> None:
        if not self.starts:
            raise PacketProcessError("no")
        self.killed_at.append(self.looks)
        self.pid += 1


def watch(silences: list[float], child: Child | None = None) -> tuple[Child, list[int]]:
    """The child after all looks, and its pid at each acquaintance."""
    child = child or Child(iter(silences))
    met: list[int] = []
    watchdog = Watchdog(child, lambda: met.append(child.pid), look_s=0)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(watchdog.run())
    assert watchdog.replacements == len(met)
    return child, met


def test_a_hung_process_is_replaced_and_acquainted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        child, met = watch([0.2, *[3.0] * HUNG_S, 0.2, 0.2])
    assert (child.killed_at, met) == ([HUNG_S + 1], [101])
    assert caplog.messages == ["the packet process 100 hung and was killed; 101 serves now"]


def test_a_short_silence_is_borne() -> None:
    child, _ = watch([3.0] * (HUNG_S - 1) + [0.2] + [3.0] * (HUNG_S - 1))
    assert child.killed_at == []


def test_a_silence_that_this_process_slept_through_is_one_look() -> None:
    child, _ = watch([3600.0, 0.2])
    assert child.killed_at == []


def test_replacements_of_one_that_hangs_again_and_again_become_rare() -> None:
    child, _ = watch([3.0] * 1000)
    gaps = [b - a for a, b in zip([0, *child.killed_at], child.killed_at, strict=False)]
    assert gaps[:4] == [HUNG_S, 2 * HUNG_S, 3 * HUNG_S, 5 * HUNG_S]
    assert gaps[-1] == HUNG_S + MAX_PAUSE_S


def test_health_is_rewarded() -> None:
    child, _ = watch([3.0] * HUNG_S + [0.2] * 600 + [3.0] * HUNG_S)
    assert len(child.killed_at) == 2


def test_a_process_that_cannot_be_replaced_ends_the_daemon() -> None:
    child = Child(iter([3.0] * 100))
    child.starts = False
    with pytest.raises(PacketProcessError):
        asyncio.run(Watchdog(child, lambda: None, look_s=0).run())
