"""What a probe client sent and what came back, and how a test has it made."""

import json
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tests.audio.chirp import SWEEP_S, Chirps, delays
from tests.audio.listening import Arrival, Heard, listen
from tests.audio.score import FIRST_TIMESTAMP, Score, to_json
from tests.clients.opus_source import FRAME
from tests.lab.ear import Row
from tests.lab.site import Site
from tests.lab.speech import RATE

_AROUND_S = 60.0  # for everything of a call but playing


class ProbeError(RuntimeError):
    """A call could not be made."""


class Moment(NamedTuple):
    """One sweep, from mouth to ear."""

    at_s: float  # where it begins in the signal
    delay_s: float  # by the wall clock
    shift: int  # samples by which it is later on the line of timestamps: the coders' delay


@dataclass(frozen=True)
class Take:
    """One call. Moments are seconds of one wall clock."""

    call_id: str
    score: Score
    sent: Sequence[float]  # of each note
    came: Sequence[Arrival]

    def heard(self) -> Heard:
        """On the line of the client's own timestamps: sample n sent is sample n heard, later."""
        return listen(self.came, FIRST_TIMESTAMP)

    def delays(self, signal: Chirps) -> list[Moment]:
        """From mouth to ear, of each sweep of a score that plays `signal` in packets of 20 ms.

        A sample waits until its packet is full, coders shift it to a later place on the line of
        timestamps, and the packet with that place has its own way. The ear has no buffer.
        """
        ways, middle = self.packet_delays(), round(SWEEP_S * RATE / 2)
        found = [
            Moment(
                each.at / RATE,
                (FRAME + each.samples) / RATE + float(ways[number]),
                each.samples,
            )
            for each in delays(signal, self.heard().samples)
            if (number := (each.at + each.samples + middle) // FRAME) < len(ways)
        ]
        return [each for each in found if not np.isnan(each.delay_s)]

    def delays_by_the_clock(self, signal: Chirps) -> list[Moment]:
        """The same where what comes back has timestamps of its own: by the client's sending clock
        and the arrivals."""
        if not self.came:
            return []
        heard, middle = listen(self.came), round(SWEEP_S * RATE / 2)
        began = float(np.median(np.array(self.sent) - [note.at for note in self.score]))
        found = [
            Moment(
                each.at / RATE,
                float(heard.at[each.at + each.samples + middle])
                - (began - FRAME / RATE + (each.at + middle) / RATE),
                each.samples,
            )
            for each in delays(signal, heard.samples)
        ]
        return [each for each in found if not np.isnan(each.delay_s)]

    def packet_delays(self) -> Row:
        """Seconds from the sending of each packet of the score until its 20 ms were back, NaN if
        they never came."""
        came = self.heard().at
        starts = np.array([(n.timestamp - FIRST_TIMESTAMP) & 0xFFFFFFFF for n in self.score])
        back = np.full(len(starts), np.nan)
        back[starts < len(came)] = came[starts[starts < len(came)]]
        return np.asarray(back - np.array(self.sent))


def record(site: Site, *scores: Score) -> list[Take]:
    """Play the scores at once, one call each, from the site's client. Raises `ProbeError` when a
    call could not be made."""
    name = secrets.token_hex(4)
    paths = [site.directory / f"score-{name}-{number}.json" for number in range(len(scores))]
    for path, score in zip(paths, scores, strict=True):
        path.write_text(to_json(score))
    command = [sys.executable, "-m", "tests.audio.probe", "--url", site.calls_url]
    command += ["--host", site.client_host, *map(str, paths)]
    longest = max(note.at for score in scores for note in score)
    done = site.client.run(command, check=False, timeout_s=longest + _AROUND_S)
    if done.returncode:
        raise ProbeError(f"the probe client: {done.stderr.strip()}")
    return [
        Take(
            made["id"],
            score,
            made["sent"],
            [Arrival(at, number, ts, bytes.fromhex(data)) for at, number, ts, data in made["came"]],
        )
        for made, score in zip(json.loads(done.stdout), scores, strict=True)
    ]
