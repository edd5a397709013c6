"""The reasons of `bpf/reason.h` are those of `relayctl.reason`, and each has a case here."""

import re
from pathlib import Path

from relayctl.reason import COUNTERS, Reason

HEADER = Path("bpf/reason.h").read_text()
ENTRIES = re.findall(r"^    REASON\((\w+), (\d+), (XDP_\w+)\)", HEADER, re.MULTILINE)
ACTIONS = {"PASS": "XDP_PASS", "PUNT": "XDP_PASS", "DROP": "XDP_DROP"}


def test_numbers_agree() -> None:
    assert {name: int(number) for name, number, _ in ENTRIES} == {
        reason.name: reason.value for reason in Reason if reason < 64
    }


def test_names_tell_what_becomes_of_the_packet() -> None:
    for name, _, action in ENTRIES:
        assert action == ACTIONS.get(name.partition("_")[0], "XDP_REDIRECT")


def test_every_reason_has_a_sentence() -> None:
    assert len(re.findall(r"/\* [A-Z][^*]*[.] +\*/ +\\\n    REASON\(", HEADER)) == len(ENTRIES)


def test_counters_agree() -> None:
    assert f"#define REASON_COUNTERS {COUNTERS} " in HEADER


def test_every_reason_has_a_case() -> None:
    cases = "".join(path.read_text() for path in Path("tests/kernel").glob("test_*.py"))
    assert [name for name, _, _ in ENTRIES if f"Reason.{name}" not in cases] == []
