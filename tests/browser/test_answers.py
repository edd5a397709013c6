"""Browsers take our answers to whatever they offer, the first time and the second."""

import sys
from pathlib import Path

from tests.browser import browser
from tests.browser.answerer import LOCAL
from tests.lab.node import Node
from tests.lab.program import Programs
from tests.unit.transceiver.sdp.answer_rules import breaches


def test_every_kind_of_offer_is_answered_as_the_browser_wants_it(
    browser_name: str, tmp_path: Path
) -> None:
    options = {
        "url": "http://127.0.0.1/",
        "browser": browser_name,
        "answerer": [sys.executable, "-m", "tests.browser.answerer"],
    }
    report = browser.run(Node(None, Programs(tmp_path)), "answers", options, limit_s=100)
    for client, rounds in report["clients"].items():
        for exchange in rounds:
            assert exchange["state"] == "stable", client
            assert not breaches(exchange["offer"], exchange["answer"], LOCAL.candidates), client
