import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench_media import page


def step(calls: int, late: float) -> dict[str, Any]:
    return {
        "calls": calls,
        "late_p99_ms": late,
        "trip_p50_ms": 0.5,
        "trip_p99_ms": 2.0,
        "loss": 0.0,
        "cpu_per_packet_us": 250.0,
        "cpu_per_call": 0.0125,
        "octets": 80.4,
        "fec": 0.42,
    }


def subject(name: str, calls: list[int], limit: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "codec": "mono",
        "srtp": "AEAD",
        "calls": calls,
        "limit": limit,
        "fixed": step(8, -0.5),
        "steps": [step(40, 1.0), step(50, 35.0), step(50, 25.0)],
    }


REPORT: dict[str, Any] = {
    "machine": {"cpu": "Some CPU", "cores": 2, "kernel": "6.1"},
    "versions": {"ferryline": "abc1234", "aiortc": "1.16.0"},
    "results": [
        {"name": "echo_calls_vs_stock", "value": 5.52, "unit": "x", "target": "≥ 5", "ok": True},
        {"name": "takeovers", "value": None, "unit": "tries", "target": "= 0", "ok": False},
    ],
    "measurements": {
        "capacity": {
            "error": None,
            "detail": {
                "fixed_calls": 8,
                "packages": "golang-go 1.19",
                "not_measured": {"stock_ours": "no"},
                "subjects": {
                    "stock": subject("aiortc, echo", [8, 7, 8]),
                    "echo": subject("Ferryline, echo", [44, 47, 45]),
                    "pion": subject("Pion, mirror", [600], "the callers"),
                },
            },
        },
        "memory": {
            "error": None,
            "detail": {
                "bytes": {
                    key: [{"anonymous": size, "rss": size + 1024.0, "process": 2.0**25}]
                    for key, size in (("stock", 409600.0), ("echo", 174080.0))
                }
            },
        },
        "set_ups": {
            "error": None,
            "detail": {"set_ups": {"echo": [{"rate": 250.4, "cpu_ms": 3.5, "p50_ms": 29.9}]}},
        },
        "at_once": {"error": None, "detail": {"setup_ms": [500.0, 900.0, 1300.0], "failed": ["x"]}},
        "hijack": {"error": "ProgramError: no", "detail": {}},
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
        "| echo_calls_vs_stock | 5.52 x | ≥ 5 |  |",
        "| takeovers | not measured | = 0 | **missed** |",
        "| Ferryline, echo | mono | AEAD | 45 | 44-47 | the server |",
        "| Pion, mirror | mono | AEAD | 600 | 600-600 | the callers |",
        "| aiortc, echo | 250 µs | 1.2 % | 0.50 / 2.00 ms | -0.50 ms | 80 | 42% |",
        "| aiortc | 400 KiB | 401 KiB | 32 MiB |",
        "| echo | 250 | 3.50 ms | 29.9 ms |",
        "Of 4 callers 3 were connected, half of them after 0.90 s, the last after 1.30 s.",
        "*aiortc* (1.16.0)",
        "- `hijack`: ProgramError: no",
        "- aiortc, our codec: not measured, no",
    ],
)
def test_the_page_says_what_the_report_says(written: Path, text: str) -> None:
    assert text in " ".join((written / "README.md").read_text().split("\n"))


def test_every_plot_that_the_page_shows_is_there(written: Path) -> None:
    shown = {part.split(")")[0] for part in (written / "README.md").read_text().split("](")[1:]}
    assert shown == {path.name for path in written.glob("*.svg")}


def test_a_report_with_nothing_in_it_still_makes_a_page(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({**REPORT, "measurements": {}}))
    page.write(report, tmp_path)
    assert "Not measured." in (tmp_path / "README.md").read_text()
    assert not list(tmp_path.glob("*.svg"))


def test_a_step_that_lost_much_is_no_quick_one() -> None:
    lost = {"fixed": step(8, 0.0), "steps": [{**step(9, 0.0), "loss": 0.5}]}
    (_, at_8), (_, at_9) = page.lateness_points(lost)
    assert at_8 < 1.0 < at_9
