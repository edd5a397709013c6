import json
from pathlib import Path
from typing import Any

from tests.bench_signaling import page

PAIR = {"p50": 12.5, "p95": 31.0}
PATH = {
    "calls": 50,
    "rtt_ms": 40.2,
    "ideal_ms": 160.8,
    "total": {"p50": 201.0, "p95": 230.0},
    "extra": {"p50": 40.2, "p95": 69.2},
    "phases": dict.fromkeys(("answer", "ice", "dtls", "rtp"), PAIR),
}
STEP = {
    "rate": 1000,
    "offers": 5000,
    "statuses": {"201": 4998, "503": 2},
    "answers_per_s": 999.6,
    "ms": {"p50": 2.0, "p95": 9.0, "p99": 21.5, "max": 80.0},
    "cpu_ms": 0.714,
}
RATES = {
    "kept": {"steps": [STEP], "best": STEP, "half": STEP},
    "new": {"steps": [STEP], "best": None, "half": None},
}
REPORT: dict[str, Any] = {
    "machine": {"cpu": "Some CPU", "cores": 2, "kernel": "6.1"},
    "versions": {"ferryline": "abc1234"},
    "results": [
        {
            "name": "offers_per_second",
            "value": 999.6,
            "unit": "offers/s",
            "target": "≥ 1000",
            "ok": False,
        },
    ],
    "measurements": {
        "setup_lean": {
            "error": None,
            "detail": {
                "paths": {"40": PATH},
                "own": dict.fromkeys(("answer", "check", "flight"), PAIR),
            },
        },
        "offers_per_second": {"error": None, "detail": RATES},
        "abandoned_offers": {
            "error": None,
            "detail": {
                "sent": {"offers": 10000, "statuses": {"201": 9000, "left": 1000}},
                "left": {"signaling: tasks": 2},
                "setup_s": 4.0,
            },
        },
        "malformed_offers": {
            "error": None,
            "detail": {"offers": 1500, "seed": 35, "answers": {"400 bad_sdp": 900}},
        },
        "schemathesis": {"error": "it broke", "detail": {}},
    },
}


def written(directory: Path, report: dict[str, Any]) -> str:
    (directory / "report.json").write_text(json.dumps(report))
    page.write(directory / "report.json", directory / "page")
    return (directory / "page" / "README.md").read_text()


def test_what_was_measured_stands_in_the_page(tmp_path: Path) -> None:
    text = written(tmp_path, REPORT)
    pair = "12.5 / 31.0"
    assert f"| lean | 40 ms | 50 | {' | '.join([pair] * 4)} | 201.0 / 230.0 | 160.8 |" in text
    assert f"| lean | {pair} | {pair} | {pair} |" in text
    figures = "1000 a second | 2 | 2.0 ms | 9.0 ms | 21.5 ms | 80.0 ms | 0.71 ms |"
    for row in ("kept | 1000", "kept | 1000, half of the best", "new | 1000"):
        assert f"| {row} | {figures}" in text
    assert "new | 1000, half" not in text
    assert "10,000 offers" in text
    assert "2 signaling: tasks" in text
    assert "| 400 bad_sdp | 900 |" in text
    assert "- `schemathesis`: it broke" in text
    assert "**missed**" in text
    assert "$" not in text


def test_a_report_without_measurements_is_a_page(tmp_path: Path) -> None:
    text = written(tmp_path, {**REPORT, "measurements": {}})
    assert text.count(page.NOT_MEASURED) == 6
