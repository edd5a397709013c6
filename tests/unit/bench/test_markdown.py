import pytest

from tests.bench import markdown
from tests.report import Value


@pytest.mark.parametrize(
    ("found", "unit", "shown"),
    [
        (None, "ms", "not measured"),
        (True, "", "yes"),
        (False, "", "no"),
        ("all", "", "all"),
        (0.8812, "ms", "0.881 ms"),
        (35934.2, "calls", "35,934 calls"),
        (60, "calls", "60 calls"),
    ],
)
def test_any_value_of_a_report_is_shown(found: Value, unit: str, shown: str) -> None:
    assert markdown.value(found, unit) == shown
