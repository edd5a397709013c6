"""The short form of the measurement: each way to leave or to end a call, twice."""

import pytest

from tests.bench_media import abandoned


@pytest.mark.parametrize("name", abandoned.MEASURES)
def test_nothing_is_left(name: str) -> None:
    findings = abandoned.MEASURES[name](18)
    assert findings.detail["left"] == {}
    assert findings.values == {f"{name}_left": 0}
    assert sum(findings.detail["ended"].values()) >= 18
