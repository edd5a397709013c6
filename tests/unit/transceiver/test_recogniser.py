import asyncio
import importlib.util
import os
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.lab import speech
from tests.unit.transceiver.live import until
from transceiver import recogniser
from transceiver.recogniser import MAX_WAITING, RATE, Recogniser, RecogniserError


class Gate(ThreadPoolExecutor):
    """One thread that does its work when told."""

    def __init__(self) -> None:
        super().__init__(1)
        self.open = threading.Event()

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        def wait() -> str:
            self.open.wait()
            return f"{len(given[0])} bytes"

        return super().submit(wait)


class Broken(Executor):
    """Its process has died."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        raise BrokenExecutor

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None: ...


def test_answers_in_order_and_refuses_what_is_too_much() -> None:
    async def scenario() -> None:
        gate, heard = Gate(), list[str | None]()
        asked = Recogniser(lambda: gate)
        for n in range(MAX_WAITING + 3):
            asked.recognise(bytes(n), heard.append)
        assert heard == [None, None]
        gate.open.set()
        await until(lambda: len(heard) >= MAX_WAITING + 3)
        assert heard[2:] == [f"{n} bytes" for n in range(MAX_WAITING + 1)]
        asked.recognise(b"again", heard.append)
        await until(lambda: heard[-1] == "5 bytes")
        asked.close()

    asyncio.run(scenario())


def test_tells_nobody_after_its_end() -> None:
    async def scenario() -> None:
        gate, heard = Gate(), list[str | None]()
        asked = Recogniser(lambda: gate)
        asked.recognise(b"x", heard.append)
        asked.recognise(b"y", heard.append)
        asked.close()
        gate.open.set()
        await asyncio.sleep(0.02)
        assert heard == []
        asked.recognise(b"z", heard.append)
        assert heard == [None]

    asyncio.run(scenario())


def test_a_dead_process_is_replaced() -> None:
    async def scenario() -> None:
        gate, heard = Gate(), list[str | None]()
        gate.open.set()
        executors = [gate, Broken()]
        asked = Recogniser(executors.pop)
        asked.recognise(b"x", heard.append)
        assert heard == [None]
        asked.recognise(b"xy", heard.append)
        await until(lambda: len(heard) >= 2)
        assert heard == [None, "2 bytes"]
        asked.close()

    asyncio.run(scenario())


def test_without_pocketsphinx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RecogniserError, match=r"pip install 'ferryline\[transcribe\]'"):
        Recogniser()


@pytest.mark.skipif(not importlib.util.find_spec("pocketsphinx"), reason="needs pocketsphinx")
def test_understands_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "nice", lambda by: 0)
    monkeypatch.setattr(recogniser, "_decoder", None)
    recogniser.load()
    spoken = speech.spoken(4.0)[:: speech.RATE // RATE]
    samples = np.round(spoken * 32767).astype(np.int16).tobytes()
    assert "american people" in recogniser.listen(samples)
    assert recogniser.listen(b"") == ""


@pytest.mark.skipif(not importlib.util.find_spec("pocketsphinx"), reason="needs pocketsphinx")
def test_listens_in_a_process_of_its_own() -> None:
    async def scenario() -> None:
        asked, heard = Recogniser(), list[str | None]()
        asked.recognise(bytes(RATE), heard.append)
        await until(lambda: heard, 60.0)
        assert isinstance(heard[0], str)
        asked.close()

    asyncio.run(scenario())
