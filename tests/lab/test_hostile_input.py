"""Ten thousand hostile datagrams at the VIP: none is answered, each is counted, nobody is hurt."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from relayctl.reason import PUNTS, Reason
from tests.clients.lean_driver import LeanDriver
from tests.lab import http, relay_counts
from tests.lab.attacker import Attacker
from tests.lab.deployment import Deployment, Place, deploy
from tests.lab.hostile import datagrams
from tests.lab.hostile_label import FATES, Label
from tests.lab.relay_counts import PROGRAM, SLOW, RelayCounts
from tests.lab.services import Services
from tests.lab.victim import target

SEED = 20
COUNT = 10_179  # every label 351 times, noise of every length
RATE = 1250.0  # a second: below each budget of the program
CALLS_OWN = (Reason.FORWARD, Reason.RETURN)


@dataclass(frozen=True)
class Storm:
    """What was sent while a call went on, and what came of it."""

    sent: Counter[Label]
    answers: list[str]
    grown: RelayCounts
    call: dict[str, object]
    flows: list[str]  # clients that have one afterwards
    processes: tuple[object, ...]  # before
    processes_after: tuple[object, ...]
    ready: tuple[int, int]  # statuses of relay and transceiver


@pytest.fixture(scope="module", params=["xdp", "socket"])
def deployment(request: pytest.FixtureRequest, lab_prefix: str) -> Iterator[Deployment]:
    place: Place = request.param
    with deploy(place, lab_prefix, echo="opus") as deployment:
        yield deployment


@pytest.fixture(scope="module")
def storm(deployment: Deployment) -> Storm:
    services, site = deployment.services, deployment.site
    hostile = list(datagrams(SEED, COUNT, target(services)))
    processes = _processes(services)
    with (
        LeanDriver.start(site.client, site.calls_url, site.client_host) as lean,
        Attacker(site.client, site.client_host, sockets=8) as attacker,
    ):
        before = relay_counts.settled(services)
        attacker.send((each.payload for each in hostile), site.vip, RATE)
        answers = attacker.answers()
        grown = relay_counts.settled(services).since(before)
        flows = [flow["client"] for flow in services.flows()]
        after = _processes(services)
        (call,) = lean.stop()["calls"]
    return Storm(
        sent=Counter(each.label for each in hostile),
        answers=answers,
        grown=grown,
        call=call,
        flows=flows,
        processes=processes,
        processes_after=after,
        ready=(
            http.request(site.relay, f"{site.admin_url}/readyz").status,
            http.request(site.transceiver, f"{site.transceiver_url}/readyz").status,
        ),
    )


def _processes(services: Services) -> tuple[object, ...]:
    status = http.request(services.site.relay, f"{services.site.admin_url}/v1/status").json()
    programs = services.relay, services.transceiver, services.signaling
    return (*((each.pid, each.running) for each in programs), status["packet_process_pid"])


def test_nobody_answers(storm: Storm) -> None:
    assert storm.answers == []


def test_each_datagram_is_counted_once(storm: Storm) -> None:
    counted = [reason for reason in PROGRAM if reason not in CALLS_OWN]
    assert storm.grown.total(counted) == storm.sent.total(), storm.grown.nonzero()


def test_each_label_meets_its_fate(storm: Storm) -> None:
    expected = Counter(
        {
            reason: sum(storm.sent[label] for label, fate in FATES.items() if reason in fate)
            for reason in (*PROGRAM, *SLOW)
            if reason not in (*CALLS_OWN, Reason.PUNT_ORPHAN, Reason.SLOW_ORPHAN)
        }
    )
    free = storm.sent[Label.BENT]
    found = {reason: storm.grown.reasons[reason] for reason in expected}
    handed_up = storm.grown.reasons[Reason.PUNT_ORPHAN]
    assert 4 <= handed_up == storm.grown.reasons[Reason.SLOW_ORPHAN]
    found[Reason.DROP_ORPHAN_CLIENT_BUDGET] += handed_up
    wrong = {
        reason.label: (found[reason], least)
        for reason, least in expected.items()
        if not least <= found[reason] <= least + free
    }
    assert not wrong, "found and expected"


def test_what_is_handed_up_arrives_and_has_one_more_reason(
    deployment: Deployment, storm: Storm
) -> None:
    grown = storm.grown
    assert grown.total(SLOW) == grown.total(PUNTS)
    if deployment.place == "xdp":
        assert grown.received + grown.socket_drops == grown.total(PUNTS)
    else:
        assert grown.received == grown.total(PROGRAM)
    assert grown.socket_drops == 0


def test_the_call_loses_nothing(storm: Storm) -> None:
    assert storm.call["error"] is None
    assert storm.call["lost"] == {"up": 0, "down": 0, "up_reported": 0}
    assert storm.call["rejected"] == 0


def test_no_flow_is_made(storm: Storm) -> None:
    assert len(storm.flows) == 1


def test_nothing_crashes(storm: Storm) -> None:
    assert storm.processes == storm.processes_after
    assert storm.ready == (200, 200)
