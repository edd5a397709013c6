"""What to do with a packet that reached user space: pure, one packet in, actions out.

The flow map is asked first, always: a packet is judged by the state when it is handled, not when
it was received, so a packet that raced the install of its own flow is just sent on. Not here:
sockets, maps, clocks.
"""

from relayctl.packet.actions import Action, Count, Event, FromClient, View
from relayctl.packet.from_client import judge_client
from relayctl.packet.from_endpoint import judge_endpoint
from relayctl.packet.routing import Drop
from relayctl.reason import Reason

STALE_NS = 1_000_000_000  # the sender has repeated a packet that waited longer than this


def decide(event: Event, view: View, now: int) -> list[Action]:
    """What to do with one packet at `now` (CLOCK_MONOTONIC, ns). Never raises on hostile bytes."""
    if now - event.received_at > STALE_NS:
        return [Count(Reason.SLOW_STALE)]
    try:
        if isinstance(event, FromClient):
            return judge_client(event, view, now)
        return judge_endpoint(event, view, now)
    except Drop as drop:
        return [Count(drop.reason)]
