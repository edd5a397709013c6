import random
from pathlib import Path

import numpy as np
import pytest

from tests.unit.transceiver.audio.test_opus import values, voice
from tests.unit.transceiver.live import Caller, run, serving, until
from transceiver.audio.opus import Decoder
from transceiver.audio.pacer import SLOT_S, Pacer
from transceiver.lateness import Lateness
from transceiver.rtp import CLOCK_RATE, FRAME
from transceiver.speaker import Speaker

RATE = 24000


class Rig:
    def __init__(self) -> None:
        self.now = 1000.0
        self.pacer = Pacer(lambda: self.now, Lateness())
        self.sent: list[tuple[float, bytes, int, bool]] = []
        self.crashes = 0
        self.frames: list[tuple[float, int]] = []  # of played samples: when, how many by then
        self.speaker = Speaker(
            RATE, 12345, self.pacer, self._send, self._crash, on_frame=self._frame
        )

    def _frame(self, now: float) -> None:
        self.frames.append((now, self.speaker.downlink.gone))

    def _send(self, payload: bytes, timestamp: int, marker: bool) -> None:
        self.sent.append((self.now, payload, timestamp, marker))

    def _crash(self) -> None:
        self.crashes += 1

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = max(self.now, min(end, self.pacer.tick(self.now)))


def test_sends_silence_then_talk_then_silence() -> None:
    rig = Rig()
    rig.speaker.resume()
    rig.run(1.0)
    said = voice(1.0)
    rig.speaker.downlink.play(said, rig.now)
    rig.run(2.0)
    assert [marker for *_, marker in rig.sent].count(True) == 1
    begin = [marker for *_, marker in rig.sent].index(True)
    decoder = Decoder(RATE)
    heard = [decoder.decode(payload) for _, payload, *_ in rig.sent]
    assert np.abs(values(b"".join(heard[5:begin]))).max() <= 2
    talk, wanted = values(b"".join(heard[begin : begin + 51])), values(said)
    assert max(np.corrcoef(talk[lag:][: len(wanted)], wanted)[0, 1] for lag in range(480)) > 0.8
    assert np.abs(values(b"".join(heard[begin + 60 :]))).max() <= 2


def test_rtp_time_follows_the_clock_for_an_hour_of_talk_and_pauses() -> None:
    rig, dice = Rig(), random.Random(1)
    speaker = rig.speaker
    speaker.voice.encode = lambda samples: b"talk"  # type: ignore[method-assign]
    speaker.resume()
    wraps = rig.now + 3600
    away = False
    while rig.now < wraps:
        match dice.randrange(4):
            case 0:
                speaker.downlink.play(bytes(dice.randrange(RATE * 20)), rig.now)
            case 1:
                speaker.downlink.flush()
            case 2:  # the client is away for a while
                if away:
                    speaker.resume()
                else:
                    speaker.pause()
                away = not away
            case 3:  # the process stands still
                rig.now += dice.uniform(0, 0.3)
        rig.run(dice.uniform(0, 20))
    (began, _, first, _), *others = rig.sent
    assert len(others) > 50_000
    last = 0
    for at, _, timestamp, _ in others:
        ticks = (timestamp - first) & 0xFFFFFFFF
        assert ticks > last
        assert ticks % FRAME == 0
        assert abs(ticks / CLOCK_RATE - (at - began)) <= SLOT_S
        last = ticks


def test_paused_it_sends_nothing_and_keeps_what_waits() -> None:
    rig = Rig()
    rig.run(0.1)
    assert not rig.sent
    rig.speaker.resume()
    rig.speaker.downlink.play(bytes(RATE * 2), rig.now)
    rig.run(0.5)
    rig.speaker.pause()
    count, queued = len(rig.sent), rig.speaker.downlink.queued
    rig.run(5.0)
    assert (len(rig.sent), rig.speaker.downlink.queued) == (count, queued)
    rig.speaker.resume()
    rig.run(0.1)
    assert rig.speaker.downlink.skipped == 0
    assert rig.speaker.downlink.queued < queued


def test_tells_of_each_frame_that_has_played_samples_after_it_was_sent() -> None:
    rig = Rig()
    rig.speaker.resume()
    rig.run(0.1)
    assert rig.sent
    assert not rig.frames
    rig.speaker.downlink.play(bytes(RATE // 10 + 2), rig.now)  # two frames and a half, and one
    rig.run(0.5)
    assert [sent for _, sent in rig.frames] == [480, 960, 1201]
    talk = next(n for n, (*_, marker) in enumerate(rig.sent) if marker)
    assert [at for at, _ in rig.frames] == [at for at, *_ in rig.sent[talk : talk + 3]]


def test_it_comes_back_to_its_place_between_the_others() -> None:
    rig = Rig()
    rig.speaker.resume()
    rig.run(0.1)
    rig.speaker.pause()
    Speaker(RATE, 0, rig.pacer, lambda *packet: None, rig._crash).resume()
    rig.run(1.0)
    rig.speaker.resume()
    rig.run(0.1)
    (began, _, first, _), *_, (at, _, timestamp, _) = rig.sent
    assert (timestamp - first) / CLOCK_RATE == pytest.approx(at - began)


def test_a_client_hears_a_paced_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, echo={"mode": "paced"}) as live:
            caller = await Caller(live).call()
            await caller.connected()
            await until(lambda: caller.frames >= 25)
            shown = (await live.show(caller.call_id))["statistics"]
            assert shown["packets_down"] >= 25
            assert shown["cushion_ms"] >= 20
            assert len(live.transceiver.pacer) == 1
            await caller.close()
            await until(lambda: len(live.transceiver.pacer) == 0)

    run(scenario)


def test_statistics_have_what_people_ask_for() -> None:
    rig = Rig()
    rig.speaker.resume()
    rig.speaker.downlink.play(bytes(RATE * 2), rig.now)
    rig.run(0.5)
    shown = rig.speaker.statistics()
    assert shown["queued_ms"] == pytest.approx(500, abs=20)
    assert shown["cushion_ms"] == 20
    assert shown["drift_ppm"] is None
    assert shown["underruns"] == shown["slots_skipped"] == shown["refused_samples"] == 0
