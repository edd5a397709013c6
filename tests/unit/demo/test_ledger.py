"""The ledger adds up what the relay counted, and says when counters disagree."""

import pytest

from relayctl.reason import Reason
from tests.demo.ledger import Carried, Ledger, between, disagreements, reasons


def test_a_call_is_the_difference_of_two_looks() -> None:
    before = {"forward": 1000, "return": 900, "punt_first": 1, "slow_installed": 1}
    after = {
        "forward": 2030,
        "return": 1925,
        "punt_first": 3,
        "punt_orphan": 1,
        "slow_installed": 2,
        "slow_forward": 1,
        "slow_hint": 1,
        "slow_return": 4,
        "slow_recovered": 1,
        "pass_not_ours": 77,
        "drop_no_flow": 2,
        "slow_forged": 3,
    }
    ledger = between(before, after, xdp=True)
    assert ledger.up == Carried(kernel=1030, user=3)
    assert ledger.down == Carried(kernel=1025, user=5)
    assert ledger.punts == {"punt_first": 2, "punt_orphan": 1}
    assert ledger.drops == {"drop_no_flow": 2, "slow_forged": 3}
    assert ledger.packets()["up"] == {"kernel": 1030, "user": 3}


def test_without_xdp_user_space_carries_everything() -> None:
    ledger = between({}, {"forward": 10, "return": 9, "slow_installed": 1}, xdp=False)
    assert ledger.up == Carried(kernel=0, user=11)
    assert ledger.down == Carried(kernel=0, user=9)


@pytest.mark.parametrize("reason", [each for each in Reason if "DROP" in each.name])
def test_no_drop_goes_unseen(reason: Reason) -> None:
    assert between({}, {reason.label: 1}, xdp=True).drops == {reason.label: 1}


def test_every_punt_lowers_the_kernel_share() -> None:
    ledger = between({}, {"forward": 995, "return": 0, "punt_first": 4, "punt_return": 1}, xdp=True)
    assert ledger.kernel_share(ledger.up) == pytest.approx(99.5)
    assert ledger.kernel_share(ledger.down) == 0


def test_nothing_carried_is_no_share() -> None:
    ledger = between({}, {}, xdp=True)
    assert ledger.kernel_share(ledger.up) == 0


def test_counters_are_read_as_relayctl_prints_them() -> None:
    printed = [{"reason": "forward", "counted_by": "program", "count": 5}]
    assert reasons(printed) == {"forward": 5}


LEDGER = Ledger(Carried(1030, 2), Carried(1000, 0), {}, {})


@pytest.mark.parametrize(
    ("up", "down", "sent", "received", "wrong"),
    [
        (1030, 1000, 1000, 990, []),
        (1032, 1000, 1000, 990, []),  # two waited for a nexthop
        (1029, 1000, 1000, 990, ["up: the flow counts 1029"]),
        (1030, 1001, 1000, 990, ["down: the flow counts 1001"]),
        (1030, 1000, 1033, 990, ["up: the relay carried 1032 packets, the client 1033"]),
        (1030, 1000, 1000, 1001, ["down: the relay carried 1000 packets, the client 1001"]),
    ],
)
def test_flow_and_client_are_the_cross_check(
    up: int, down: int, sent: int, received: int, wrong: list[str]
) -> None:
    found = disagreements(LEDGER, {"packets": {"up": up, "down": down}}, sent, received)
    assert [line[: len(start)] for line, start in zip(found, wrong, strict=True)] == wrong
