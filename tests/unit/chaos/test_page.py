import json
from pathlib import Path

from tests.chaos import page

COLUMNS = {f"gap_{way}_{which}": 12.4 for way in ("up", "down") for which in ("p50", "max")}
DIFFERENCE = COLUMNS | {"lost_up": 1234, "lost_down": 0, "calls_lost": 0, "recovery": 1.5}
DETAIL = {
    "difference": DIFFERENCE,
    "control": COLUMNS,
    "whole": COLUMNS,
    "how": "It is\ntaken away.",
    "stage": "1 relay, agent answers",
    "moments_s": {"fault": 0.0, "ready": 2.25},
}
REPORT = {
    "machine": {"cpu": "a", "cores": 2, "kernel": "6"},
    "versions": {"ferryline": "abc"},
    "results": [{"name": "x_lost_up", "value": 3, "unit": "packets", "target": "= 0", "ok": False}],
    "measurements": {
        "x": {"error": None, "detail": DETAIL},
        "many": {"error": None, "detail": {"flows": 100}},
        "broken": {"error": "it did not start", "detail": {}},
    },
}


def test_the_page_tells_what_the_report_has(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps(REPORT))
    page.write(report, tmp_path / "chaos")
    text = (tmp_path / "chaos" / "README.md").read_text()
    row = "| `x` | 12 / 12 (12 / 12) | 12 / 12 (12 / 12) | 1,234 | 0 | 0 | 1.50 |"
    assert row in text
    assert "| x_lost_up | 3 packets | = 0 | **missed** |" in text
    assert "- `broken`: it did not start" in text
    assert "**`x`** (1 relay, agent answers). It is taken away. Moments" in text
    assert "Moments after the fault: ready 2.25 s." in text
    assert "`many`" not in text
    assert "$" not in text
