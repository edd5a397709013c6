import json
from collections.abc import Iterable

import pytest

import relayctl.cli.doctor
from relayctl.doctor.result import Result, fail, ok, skip, warn
from tests.unit.relayctl.cli.conftest import Relay

RESULTS = [
    ok("kernel", "6.1.0"),
    warn("keys", "open to others", "chmod 0600 /etc/ferryline/route.keys"),
    skip("jit", "not shown"),
]
FAULT = fail("xdp:eth0", "program 17 (evil\x1b[2J) is attached", "ip link set dev eth0 xdp off")


def answer(monkeypatch: pytest.MonkeyPatch, results: Iterable[Result]) -> None:
    monkeypatch.setattr(relayctl.cli.doctor, "examine_host", lambda _: results)


def test_table(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, RESULTS)
    found = relay.run("doctor")
    assert found.exit_code == 0
    assert found.stdout == (
        "ok   kernel: 6.1.0\n"
        "warn keys: open to others\n"
        "       chmod 0600 /etc/ferryline/route.keys\n"
    )
    assert "skip jit: not shown\n" in relay.run("doctor", "--all").stdout


def test_a_failed_check_is_exit_code_1(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, [*RESULTS, FAULT])
    found = relay.run("doctor")
    assert found.exit_code == 1
    assert "evil\\x1b[2J" in found.stdout


def test_json(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, [*RESULTS, FAULT])
    found = relay.run("doctor", "-o", "json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)[1] == {
        "name": "keys",
        "status": "warn",
        "detail": "open to others",
        "mend": "chmod 0600 /etc/ferryline/route.keys",
    }


def test_looks_at_this_host(relay: Relay) -> None:
    results = json.loads(relay.run("doctor", "-o", "json").stdout)
    names = {result["name"] for result in results}
    assert {"keys", "run-dir", "daemon", "kernel", "inner-ports"} <= names
