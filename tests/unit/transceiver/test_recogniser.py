import asyncio
import importlib.util
import multiprocessing
import threading

import numpy as np
import pytest

from tests.lab import speech
from tests.unit.transceiver.live import until
from transceiver.recogniser import (
    MAX_WAITING,
    RATE,
    Process,
    Recogniser,
    RecogniserError,
    load,
    understand,
)

needs_pocketsphinx = pytest.mark.skipif(
    not importlib.util.find_spec("pocketsphinx"), reason="needs pocketsphinx"
)


class Gate:
    """Ears that listen when told."""

    def __init__(self, is_open: bool = False) -> None:
        self._open = threading.Event()
        self.closed = False
        if is_open:
            self.open()

    def open(self) -> None:
        self._open.set()

    def listen(self, samples: bytes) -> str:
        self._open.wait()
        if self.closed:
            raise EOFError
        return f"{len(samples)} bytes"

    def close(self) -> None:
        self.closed = True
        self.open()


def test_answers_in_order_and_refuses_what_is_too_much() -> None:
    async def scenario() -> None:
        gate, heard = Gate(), list[str | None]()
        asked = Recogniser(lambda: gate)
        for n in range(MAX_WAITING + 3):
            asked.recognise(bytes(n), heard.append)
        assert heard == [None, None]
        gate.open()
        await until(lambda: len(heard) >= MAX_WAITING + 3)
        assert heard[2:] == [f"{n} bytes" for n in range(MAX_WAITING + 1)]
        asked.recognise(b"again", heard.append)
        await until(lambda: heard[-1] == "5 bytes")
        asked.close()

    asyncio.run(scenario())


def test_tells_nobody_after_its_end() -> None:
    async def scenario() -> None:
        made, heard = [Gate()], list[str | None]()
        asked = Recogniser(made.pop)
        for _ in range(3):
            asked.recognise(b"x", heard.append)
        asked.close()
        asked.close()
        await asyncio.sleep(0.02)
        assert heard == []
        asked.recognise(b"z", heard.append)
        assert heard == [None]

    asyncio.run(scenario())


def test_who_died_is_replaced() -> None:
    async def scenario() -> None:
        dead, alive, heard = Gate(), Gate(is_open=True), list[str | None]()
        dead.close()
        made = [alive, dead]
        asked = Recogniser(made.pop)
        asked.recognise(b"x", heard.append)
        asked.recognise(b"xy", heard.append)
        await until(lambda: len(heard) >= 2)
        assert heard == [None, "2 bytes"]
        asked.close()
        assert alive.closed

    asyncio.run(scenario())


def test_without_pocketsphinx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RecogniserError, match=r"pip install 'ferryline\[transcribe\]'"):
        Recogniser()


@needs_pocketsphinx
def test_understands_a_little() -> None:
    spoken = speech.spoken(4.0)[:: speech.RATE // RATE]
    samples = np.round(spoken * 32767).astype(np.int16).tobytes()
    decoder = load()
    assert "american people" in understand(decoder, samples)
    assert understand(decoder, b"") == ""


@needs_pocketsphinx
def test_listens_in_a_process_of_its_own_that_ends_at_once() -> None:
    async def scenario() -> None:
        asked, heard = Recogniser(), list[str | None]()
        asked.recognise(bytes(RATE), heard.append)
        await until(lambda: heard, 60.0)
        assert isinstance(heard[0], str)
        assert isinstance(asked._ears, Process)
        process = asked._ears._process
        assert process in multiprocessing.active_children()
        for _ in range(3):
            asked.recognise(bytes(RATE * 2 * 60), heard.append)
        asked.close()
        await until(lambda: not process.is_alive())
        assert len(heard) == 1

    asyncio.run(scenario())
