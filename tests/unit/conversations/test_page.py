import json
from pathlib import Path
from typing import Any

import pytest

from tests.conversations import page

SPREAD = {"min": 61.0, "p50": 88.5, "p95": 117.25, "max": 131.0}
REPORT: dict[str, Any] = {
    "machine": {"cpu": "Some CPU", "cores": 2, "kernel": "6.1"},
    "versions": {"ferryline": "abc1234"},
    "results": [
        {"name": "barge_in_p95", "value": 117.25, "unit": "ms", "target": "≤ 120", "ok": True},
        {"name": "backend_back", "value": 3.4, "unit": "s", "target": "≤ 1", "ok": False},
    ],
    "measurements": {
        "scripted": {
            "error": None,
            "detail": {"events": 2345, "kinds": ["a", "b"], "out_of_order": {"parrot x": "late"}},
        },
        "barge_in": {
            "error": None,
            "detail": {
                "took_ms": SPREAD,
                "decision_ms": SPREAD,
                "flush_ms": SPREAD,
                "all_ms": [61.0, 88.5, 89.0, 131.0],
            },
        },
        "position": {
            "error": None,
            "detail": {
                "default_20": {"cut": 20, "error_ms": SPREAD},
                "told_far": {"cut": 19, "error_ms": SPREAD},
            },
        },
        "pauses": {
            "error": None,
            "detail": {
                "settings": {
                    "semantic_low": {
                        "early_ends": 0.231,
                        "answers_given_up": 6,
                        "end_of_turn_ms": {"p50": 1288, "p95": 1310},
                        "sound_into_resumed_speech": 0,
                    }
                }
            },
        },
        "own_echo": {
            "error": None,
            "detail": {
                "turns": 50,
                "delays_ms": [150, 690],
                "talk_over_silenced_after_ms": {"p50": 83, "p95": 148},
            },
        },
        "backend_faults": {
            "error": None,
            "detail": {
                "faults": ["absent", "dead"],
                "lost": {"dead": "no packets come any more"},
                "untold": {},
                "memory_mb": {"absent": 1.5, "dead": -0.2},
                "back_s": {"0.5": 0.41},
            },
        },
        "append_latency": {"error": "MeasurementError: no session.created came", "detail": {}},
        "parrot_capacity": {
            "error": None,
            "detail": {
                "silero": [
                    {"calls": 4, "holds": True, "load": 0.08},
                    {"calls": 60, "holds": True, "load": 0.9},
                    {"calls": 66, "holds": False, "load": 0.98},
                ]
            },
        },
    },
}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    report = tmp_path / "report.json"
    report.write_text(json.dumps(REPORT))
    page.write(report, tmp_path / "docs")
    return tmp_path / "docs"


def test_the_page_has_the_figures_of_the_report(written: Path) -> None:
    text = (written / "README.md").read_text()
    for line in (
        "abc1234 on Some CPU, 2 cores, kernel 6.1",
        "| backend_back | 3.4 s | ≤ 1 | **missed** |",
        "2,345 events of 2 kinds",
        "- parrot x: late",
        "| first word to silence | 61.0 | 88.5 | 117.2 | 131.0 |",
        "| 20 ms, by default | 20 |",
        "| 60 ms, told, far | 19 |",
        "| semantic low | 23% | 1288 / 1310 ms | 6 | 0 |",
        "50 turns with the agent's voice coming back, 150 to 690 ms late",
        "| dead | no packets come any more | as they should be | -0.2 MB |",
        "0.5 s: 0.41 s",
        "| silero | 60 | 2 % |",
        "`append_latency`: MeasurementError",
    ):
        assert line in text


def test_the_plot_has_a_bar_for_each_bin(written: Path) -> None:
    text = (written / "barge_in.svg").read_text()
    assert text.count('rx="2"') == 8  # 60 to 140 ms
    assert "80 to 90 ms" in text


def test_nothing_measured_is_a_page_too(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({**REPORT, "measurements": {}}))
    page.write(report, tmp_path)
    assert "Not measured." in (tmp_path / "README.md").read_text()
    assert not (tmp_path / "barge_in.svg").exists()
