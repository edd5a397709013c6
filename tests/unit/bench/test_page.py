import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench import page
from tests.bench.histogram import STEPS


def histogram(step: int) -> list[int]:
    return [100 * (at == step) for at in range(STEPS)]


def peer(cpu: float, **more: Any) -> dict[str, Any]:
    delay = {"load": 50, "ns": {"p50": 2500.0, "p99": 5e4, "p99.9": 1.5e6}}
    other = {"load": 10, "ns": {"p50": 1.0, "p99": 1.0, "p99.9": 1.0}}
    latency = [other, delay]
    return {"name": "it", "flows": 1024, "rate": 2e6, "cpu_ns": cpu, "latency": latency, **more}


REPORT: dict[str, Any] = {
    "machine": {"cpu": "Some CPU", "cores": 2, "kernel": "6.1"},
    "versions": {"ferryline": "abc1234"},
    "results": [
        {"name": "spp_vs_bare", "value": 0.861, "unit": "", "target": "≥ 0.85", "ok": True},
        {"name": "burst_lost", "value": None, "unit": "", "target": "= 0", "ok": False},
    ],
    "measurements": {
        "ways": {
            "error": None,
            "detail": {
                "ways": {
                    "SPP": {
                        "ratio": 0.86,
                        "rate": 2e6,
                        "subject": [2e6, 1.5e6],
                        "reference": [2.4e6, 2e6],
                    }
                }
            },
        },
        "flows": {
            "error": None,
            "detail": {
                "rates_by_flows": {
                    "SPP": {"1": [2e6], "1048576": [1e6]},
                    "bare": {"1": [3e6], "1048576": [2.9e6]},
                }
            },
        },
        "latency": {
            "error": None,
            "detail": {
                "latency": {
                    name: {load: {"histogram": histogram(300)} for load in ("50", "90")}
                    for name in ("SPP", "bare")
                }
            },
        },
        "peers": {
            "error": None,
            "detail": {
                "direct_ns": 165.0,
                "peers": {
                    "ferryline": peer(200.0),
                    "go": peer(5200.0, ratio=14.2),
                    "coturn": {"not_run": "no turnserver"},
                },
            },
        },
        "program": {
            "error": None,
            "detail": {
                "costs": [
                    {
                        "flows": 262144,
                        "floor": 28.0,
                        "lookup_over_floor": 300.0,
                        "hit_over_floor": 400.0,
                        "bracket": [390.0, 410.0],
                    }
                ]
            },
        },
        "calls": {"error": "ProgramError: no", "detail": {}},
    },
}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    report = tmp_path / "report.json"
    report.write_text(json.dumps(REPORT))
    page.write(report, tmp_path / "docs")
    return tmp_path / "docs"


@pytest.mark.parametrize(
    "text",
    [
        "at abc1234 on Some CPU, 2 cores, kernel 6.1",
        "| spp_vs_bare | 0.861 | ≥ 0.85 |  |",
        "| burst_lost | not measured | = 0 | **missed** |",
        "| SPP | 2.00 | 2.40 | 0.86 | 0.75-0.83 |",
        "| it | 1,024 | 2,000,000 | 14.2 x | 5,200 ns | 2.5 µs / 50 µs / 1.5 ms |",
        "| coturn |  | not run: no turnserver |",
        "| 262,144 | 28 | 300 | 400 | 390-410 |",
        "(that is 165 ns here)",
        "- `calls`: ProgramError: no",
    ],
)
def test_the_page_says_what_the_report_says(written: Path, text: str) -> None:
    assert text in " ".join((written / "README.md").read_text().split("\n"))


def test_every_plot_that_the_page_shows_is_there(written: Path) -> None:
    shown = {part.split(")")[0] for part in (written / "README.md").read_text().split("](")[1:]}
    assert shown == {path.name for path in written.glob("*.svg")}


def test_what_was_not_measured_has_no_plot(tmp_path: Path) -> None:
    assert page.rate_by_flows({}) == page.latency({}) == page.cost({}) == ""
