"""Reasons are closed sets."""

from transceiver.ice.event import Drop
from transceiver.ice.stun import Reject


def test_every_reject_of_the_parser_is_a_reason_to_drop() -> None:
    assert {Drop(reject) for reject in Reject} <= set(Drop)
