import pytest

from tests.realtime_server.script import Script


def test_of_json() -> None:
    assert Script.of({"pace": 1.0, "stray": ["{"]}) == Script(pace=1.0, stray=("{",))


def test_a_key_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=r"no \['speed'\]; there are .*'pace'"):
        Script.of({"speed": 1})
