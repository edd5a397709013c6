from typing import Any

import pytest

from tests.kernels import judge
from tests.kernels.controls import CONTROLS
from tests.kernels.series import Series

FLOOR, OLD = Series("6.1"), Series("5.10", below_floor=True)


def good(series: Series = FLOOR) -> dict[str, Any]:
    """What a guest finds where all is well."""
    return {
        "kernel": f"{series.name}.0-57-cloud-amd64",
        "controls": {each.name: each.accepted_by(series.version) for each in CONTROLS},
        "load": {"instructions": 97326, "wall_seconds": 30.1},
        "attach": {"native": "xdp-native", "generic": "xdp-generic"},
        "vlan": {"hit": "ok", "miss": "ok"},
        "tests": {"status": 0, "passed": 150, "failed": [], "skipped": []},
    }


def test_all_pass() -> None:
    assert judge.complaints(FLOOR, good()) == []
    assert judge.verdict([]) == judge.ALL_PASS


@pytest.mark.parametrize("step", judge.steps(FLOOR))
def test_each_step_has_to_be_done_and_to_succeed(step: str) -> None:
    missing = good()
    del missing[step]
    assert judge.complaints(FLOOR, missing) == [f"{step}: not done"]
    assert judge.complaints(FLOOR, good() | {step: {}}) == [f"{step}: not done"]
    failed = good() | {step: {"error": "DatapathError: no"}}
    assert judge.complaints(FLOOR, failed) == [f"{step}: DatapathError: no"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kernel": "6.12.117+deb12-cloud-amd64"}, "this is kernel 6.12.117+deb12-cloud-amd64"),
        ({"load": {"instructions": 0}}, "load: the verifier's instructions were not counted"),
        ({"attach": {"native": "xdp-native"}}, "attach: generic: not tried"),
        (
            {"attach": {"native": "xdp-generic", "generic": "xdp-generic"}},
            "attach: native: xdp-generic",
        ),
        ({"vlan": {"hit": "ok", "miss": "counted: nothing"}}, "vlan: miss: counted: nothing"),
    ],
)
def test_what_is_otherwise(change: dict[str, Any], complaint: str) -> None:
    assert judge.complaints(FLOOR, good() | change) == [complaint]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"status": 1}, "tests: pytest ended with status 1"),
        ({"passed": 0}, "tests: none passed"),
        ({"failed": ["a::b"]}, "tests: 1 failed: a::b"),
        ({"failed": ["a::b", "c"]}, "tests: 2 failed: a::b …"),
        ({"skipped": ["a::b"]}, "tests: 1 skipped: a::b"),
    ],
)
def test_tests(change: dict[str, Any], complaint: str) -> None:
    found = good()
    found["tests"] |= change
    assert judge.complaints(FLOOR, found) == [complaint]


def test_below_the_floor_only_the_controls_count() -> None:
    found = good(OLD) | {"load": {"error": "refused"}}
    assert judge.complaints(OLD, found) == []
    assert judge.steps(OLD) == ("controls", "load")


def test_below_the_floor_a_wrong_kernel_is_still_one() -> None:
    found = good(OLD) | {"controls": good(FLOOR)["controls"]}
    assert len(judge.complaints(OLD, found)) == 1


def test_verdict_names_all() -> None:
    assert judge.verdict(["a", "b"]) == "a; b"


def test_refusal_is_the_verifiers_last_word() -> None:
    walk = ["0: (bf) r6 = r1", "invalid func unknown#160", "processed 276 insns (limit 1000000)"]
    assert judge.refusal([*walk, "", "HINT"]) == "invalid func unknown#160"
    assert judge.refusal(["too early"]) == "the verifier did not say why"
