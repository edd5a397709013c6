"""What is said is what is heard, through relay, transceiver and a bad network: by waveform.

Nothing here counts packets or milliseconds of the machine. A call's sound is judged on the line of
the client's own timestamps, which the echo keeps: there each moment may only be later by what the
coders on the way look ahead, whatever was lost, doubled, overtaken or left out.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.audio import chirp, repair, score
from tests.audio.loss_and_jitter import followed_by_a_copy, lost_of
from tests.audio.take import Take, record
from tests.clients.opus_source import FRAME
from tests.lab import ear, speech
from tests.lab.deployment import Deployment, Place, deploy, unavailable
from tests.lab.frame import Kind
from tests.lab.impairment import DOWN, UP, Rule
from tests.lab.speech import RATE

SECONDS = 5.0
CODERS = 2 * repair.ECHOED  # the client's and the echo's
NEAR = round(0.0005 * RATE)  # samples in half a millisecond
PAUSES = {"dtx": (2.0, 2.4), "muted": (1.0, 4.0)}
LENGTHS_MS = (10, 40, 60)
RTP = frozenset({Kind.RTP})
BAD_UP = Rule(UP, RTP, delay_s=0.02, jitter_s=0.02, drop=0.06, duplicate=0.05)
BAD_DOWN = Rule(DOWN, RTP, delay_s=0.02, jitter_s=0.02, reorder=0.05, duplicate=0.05)

CHIRPS = chirp.chirps(SECONDS)


def scores() -> dict[str, list[score.Note]]:
    """One call each."""
    talk = score.encode(speech.spoken(SECONDS), fec=True)
    sweeps = score.encode(CHIRPS.samples)
    some = range(5, len(talk), 20)
    return {
        "talk": talk,
        "chirps": sweeps,
        "overtaken": score.late(talk, some, 0.0605),
        "doubled": score.doubled(score.doubled(talk, some), range(9, len(talk), 20), 0.05),
        **{name: score.paused(sweeps, *pause) for name, pause in PAUSES.items()},
        **{f"{ms} ms": score.encode(CHIRPS.samples, frame_ms=ms) for ms in LENGTHS_MS},
    }


@pytest.fixture(scope="module", params=["xdp", "socket"])
def deployment(request: pytest.FixtureRequest, lab_prefix: str) -> Iterator[Deployment]:
    place: Place = request.param
    if reason := unavailable(place):
        pytest.skip(reason)
    with deploy(place, f"{lab_prefix}a-", faults=True) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def takes(deployment: Deployment) -> dict[str, Take]:
    """All calls at once over a good network."""
    played = scores()
    return dict(zip(played, record(deployment.site, *played.values()), strict=True))


@pytest.fixture(scope="module")
def harmed(deployment: Deployment) -> Iterator[Take]:
    """The talk over a bad network."""
    assert deployment.lab is not None
    deployment.lab.hop.set_rules(BAD_UP, BAD_DOWN)
    (take,) = record(deployment.site, scores()["talk"])
    yield take
    deployment.lab.hop.clear()


def sweeps_of(take: Take) -> list[chirp.Delay]:
    found = chirp.delays(CHIRPS, take.heard().samples)
    assert all(abs(each.samples - CODERS) < NEAR for each in found), found
    return found


def likeness(first: Take, second: Take) -> ear.Hearing:
    return ear.correlate(first.heard().samples, second.heard().samples, RATE)


def test_each_moment_is_later_by_the_coders_and_nothing_else(takes: dict[str, Take]) -> None:
    assert len(sweeps_of(takes["chirps"])) == len(CHIRPS.starts)


def test_the_words_come_back_and_no_others(takes: dict[str, Take]) -> None:
    heard = takes["talk"].heard().samples
    same = ear.correlate(speech.spoken(SECONDS), heard, RATE)
    assert same.windows >= 3
    assert same.median > 0.8
    other = ear.correlate(speech.spoken(SECONDS, speech.OTHER), heard, RATE)
    assert other.median < 0.3


@pytest.mark.parametrize("frame_ms", LENGTHS_MS)
def test_packets_of_other_lengths(takes: dict[str, Take], frame_ms: int) -> None:
    take = takes[f"{frame_ms} ms"]
    assert take.heard().came.all()
    assert len(sweeps_of(take)) >= 0.9 * len(CHIRPS.starts)


@pytest.mark.parametrize("name", PAUSES)
def test_after_a_pause_sound_has_its_own_time(takes: dict[str, Take], name: str) -> None:
    start, end = (round(at * RATE) for at in PAUSES[name])
    take = takes[name]
    assert not take.heard().samples[start + CODERS : end].any()
    margin = round(0.1 * RATE)
    clear = {at for at in CHIRPS.starts if at < start - margin or at > end + margin}
    assert clear <= {each.at for each in sweeps_of(take)}


@pytest.mark.parametrize("name", ["overtaken", "doubled"])
def test_each_packet_is_heard_once_and_in_order(takes: dict[str, Take], name: str) -> None:
    take = takes[name]
    assert take.heard().came.all()
    assert len({each.timestamp for each in take.came}) == len(take.came)
    same = likeness(takes["talk"], take)
    assert same.median > 0.9
    assert same.lag_ms == same.lag_drift_ms == 0


def test_what_was_lost_is_repaired_in_its_place(takes: dict[str, Take], harmed: Take) -> None:
    calm, heard = takes["talk"].heard(), harmed.heard()
    notes = takes["talk"].score
    lost = [n for n in lost_of(len(notes), BAD_UP) if n < len(notes) - 2]
    assert len(lost) > 5
    assert heard.came[: (len(notes) - 2) * FRAME].all()
    spoken = repair.spoken_frames(calm.samples, lost, repair.ECHOED)
    copied = [number for number in spoken if followed_by_a_copy(notes, number, lost)]
    assert copied
    errors = [
        repair.error(calm.samples, heard.samples, frames, repair.ECHOED)
        for frames in (spoken, copied)
    ]
    assert errors[0] is not None
    assert errors[0] <= 0.8
    assert errors[1] is not None
    assert errors[1] <= 0.4


def test_a_bad_network_moves_no_sound(takes: dict[str, Take], harmed: Take) -> None:
    same = likeness(takes["talk"], harmed)
    assert same.median > 0.85
    assert same.lag_ms == same.lag_drift_ms == 0
    assert np.isfinite(harmed.packet_delays()[:-2]).all()
