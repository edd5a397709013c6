"""What a guest found, against what its kernel has to do. Pure."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.kernels import controls
from tests.kernels.series import Series

ALL_PASS = "all pass"
_BELOW_FLOOR = ("controls", "load")
_SUPPORTED = ("controls", "load", "attach", "vlan", "tests")


def steps(series: Series) -> Sequence[str]:
    """What the guest of a kernel does."""
    return _BELOW_FLOOR if series.below_floor else _SUPPORTED


def complaints(series: Series, findings: Mapping[str, Any]) -> list[str]:
    """What is not as it has to be, one sentence each; a step that is missing is one."""
    found = []
    if not findings.get("kernel", "").startswith(f"{series.name}."):
        found.append(f"this is kernel {findings.get('kernel')}")
    for step in steps(series):
        outcome = findings.get(step)
        if not outcome:
            found.append(f"{step}: not done")
        elif "error" in outcome:
            if not (step == "load" and series.below_floor):
                found.append(f"{step}: {outcome['error']}")
        else:
            found += _JUDGES[step](series, outcome)
    return found


def refusal(said: Sequence[str]) -> str:
    """Why the verifier refuses a program: its walk ends with the reason and a line of sums."""
    for reason, sums in itertools.pairwise(said):
        if re.match(r"processed \d+ insns", sums):
            return reason
    return "the verifier did not say why"


def verdict(found: Sequence[str]) -> str:
    return "; ".join(found) or ALL_PASS


def _controls(series: Series, accepted: dict[str, bool]) -> list[str]:
    return controls.surprises(series.version, accepted)


def _load(series: Series, loaded: Mapping[str, Any]) -> list[str]:
    """Kernels since 5.16 tell how many instructions the verifier walked through."""
    told = loaded["instructions"] > 0 or series.version < (5, 16)
    return [] if told else ["load: the verifier's instructions were not counted"]


def _attach(_: Series, names: Mapping[str, str]) -> list[str]:
    return [
        f"attach: {mode}: {names.get(mode, 'not tried')}"
        for mode in ("native", "generic")
        if names.get(mode) != f"xdp-{mode}"
    ]


def _vlan(_: Series, outcomes: Mapping[str, str]) -> list[str]:
    return [f"vlan: {what}: {outcome}" for what, outcome in outcomes.items() if outcome != "ok"]


def _tests(_: Series, outcome: Mapping[str, Any]) -> list[str]:
    """A skipped test shows nothing about a kernel."""
    found = []
    if outcome["status"]:
        found.append(f"tests: pytest ended with status {outcome['status']}")
    if not outcome["passed"]:
        found.append("tests: none passed")
    return found + [
        f"tests: {len(names)} {how}: {names[0]}{' …' if names[1:] else ''}"
        for how in ("failed", "skipped")
        if (names := outcome[how])
    ]


_JUDGES: dict[str, Callable[[Series, Any], list[str]]] = {
    "controls": _controls,
    "load": _load,
    "attach": _attach,
    "vlan": _vlan,
    "tests": _tests,
}
