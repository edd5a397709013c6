"""What a killed transceiver costs whoever talks by the page: how soon it notices, how soon a voice
is back, and whether every word is kept. By the arrival of packets at the browser."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relayctl.wire.address import Address, render
from tests.browser import browser
from tests.figures.measurement import expect
from tests.lab.program import Program
from tests.lab.services import Services

WORDS = ("one", "two", "three")  # what is written before; the backend has to be parrot
_LIMIT_S = 120.0


@dataclass(frozen=True)
class Rescue:
    """Milliseconds: from the last packet to when the page saw the loss, from there to the first
    packet of the other transceiver, and both from the kill on. `items_equal`: the other one knows
    what was said, under the old names, and the page shows it once."""

    notice_ms: int
    voice_back_ms: int
    kill_to_voice_ms: int
    items_equal: bool


def measure(
    services: Services,
    transceivers: Mapping[Address, Program],
    name: str,
    words: Sequence[str] = WORDS,
) -> Rescue:
    """One call of the browser `name`; the transceiver that has it is killed, and stays dead. At
    least one other has to be there, and a Redis. Raises `MeasurementError`, `ScenarioError`."""
    options = {
        "browser": name,
        "url": f"{services.site.base_url}/",
        "owners": {render(address): program.pid for address, program in transceivers.items()},
        "words": list(words),
    }
    report = browser.run(services.site.client, "resume", options, _LIMIT_S)
    expect(report["heard"], "nothing was heard before")
    expect(report["after"]["resumes"] == 1, f"not resumed: {report['after']['status']}")
    times, before = report["times"], report["before"]["turns"]
    shown = [turn for turn in report["after"]["turns"] if turn["who"] != "page"]
    kept = [item["id"] for item in report["items"]]
    return Rescue(
        times["notice_ms"],
        times["voice_back_ms"],
        times["kill_to_voice_ms"],
        shown == before and kept == [turn["id"] for turn in before],
    )
