"""The program's unit of time is the clock's, at every moment of it."""

import time

from relayctl.flow import UNIT_NS
from tests.kernel.packets import frame, rtp
from tests.kernel.rig import CLIENT, VIP, Rig, now


def test_unit_is_the_clocks_all_through_two_of_them(relay: Rig) -> None:
    key = relay.install()
    end = time.monotonic_ns() + 2 * UNIT_NS
    seen = set()
    while time.monotonic_ns() < end:
        before = now()
        relay.send(frame(CLIENT, VIP, rtp(7)))
        stamp = relay.flow(key).seen_up
        assert before <= stamp <= now()
        seen.add(stamp)
    assert len(seen) >= 2
