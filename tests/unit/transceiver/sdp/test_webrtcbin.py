"""GStreamer takes our answers to whatever it offers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.answerer import LOCAL
from tests.unit.transceiver.sdp import webrtcbin
from tests.unit.transceiver.sdp.answer_rules import breaches

PYTHON = "/usr/bin/python3"
NEEDED = "import gi; gi.require_version('GstWebRTC', '1.0'); from gi.repository import GstWebRTC"


def test_every_kind_of_offer_is_answered_as_webrtcbin_wants_it() -> None:
    if subprocess.run([PYTHON, "-c", NEEDED], capture_output=True, check=False).returncode:
        pytest.skip(
            "GStreamer is not installed: apt-get install python3-gi gir1.2-gst-plugins-bad-1.0"
        )
    answerer = [sys.executable, "-m", "tests.browser.answerer"]
    run = subprocess.run(
        [PYTHON, str(Path(webrtcbin.__file__)), json.dumps(answerer)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=Path(__file__).parents[4],
    )
    assert run.returncode == 0, run.stderr[-2000:]
    exchanges = json.loads(run.stdout.splitlines()[-1])
    assert {name: each["state"] for name, each in exchanges.items()} == dict.fromkeys(
        webrtcbin.KINDS, "stable"
    )
    for name, each in exchanges.items():
        assert breaches(each["offer"], each["answer"], LOCAL.candidates) == [], name
