"""One call of Chromium, judged by its own statistics."""

from relayctl.wire.address import render
from tests.browser import browser
from tests.figures.measurement import PREFIX, Findings, Measurement, expect
from tests.lab import speech, topology
from tests.lab.deployment import deploy
from tests.report import Target

SECONDS = 20.0
TARGETS = (
    Target("chromium_concealed", "<", 1, "%"),
    Target("chromium_selected_remote", "=", render((topology.VIP, 3478))),
    Target("chromium_data_channel", "=", "open"),
    Target("chromium_audio_energy", ">", 0),
)


def measurements() -> list[Measurement]:
    return [Measurement("chromium_call", TARGETS, measure)]


def measure(seconds: float = SECONDS) -> Findings:
    with deploy("xdp", PREFIX) as place:
        voice = place.site.directory / "spoken.wav"
        speech.write_wav(voice, speech.spoken(seconds + 10))
        options = {
            "url": f"{place.site.base_url}/",
            "browser": "chromium",
            "seconds": seconds,
            "audio": str(voice),
        }
        report = browser.run(place.site.client, "call", options, limit_s=seconds + 60)
    expect(report["heard"], "chromium heard nothing")
    talking = report["talking"]
    expect(talking["samples"] > 0.9 * seconds * speech.RATE, f"{talking['samples']} samples")
    return Findings(
        {
            "chromium_concealed": 100 * talking["concealed"] / talking["samples"],
            "chromium_selected_remote": talking["selected"]["remote"],
            "chromium_data_channel": talking["channel"],
            # Rounded: a coder gives a silent call the energy of some 1e-8.
            "chromium_audio_energy": round(talking["energy"], 3),
        },
        report,
    )
