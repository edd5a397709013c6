import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relayctl.flow import FlowKey
from relayctl.packet.actions import (
    Action,
    Count,
    Event,
    FromClient,
    FromEndpoint,
    Install,
    SendInner,
)
from relayctl.packet.decide import STALE_NS, decide
from relayctl.reason import Reason
from tests.unit.relayctl.fake_view import FakeView
from tests.unit.relayctl.packet.events import NOW, OUR_KEY, reason_of
from tests.unit.relayctl.packets import (
    CLIENT,
    CLIENT_6,
    ENDPOINT,
    ENDPOINT_6,
    OTHER_ENDPOINT,
    VIP,
    VIP_6,
    binding_request,
    binding_response,
    rtp,
    spp_header,
    token,
)


@pytest.fixture
def view() -> FakeView:
    return FakeView()


def test_stale_packets_are_not_worth_a_look(view: FakeView) -> None:
    event = FromClient(binding_request(token()), OUR_KEY, NOW - STALE_NS - 1)
    assert reason_of(event, view) is Reason.SLOW_STALE


TOKENS = [
    *(token(), token(OTHER_ENDPOINT), token(ENDPOINT_6, cluster=9)),
    *(token(cluster=8), b"x" * 24),
]
PAYLOADS = st.one_of(
    st.binary(max_size=80),
    st.binary(max_size=60).map(lambda b: b"\0\1" + b),
    st.sampled_from(
        [token(), token(OTHER_ENDPOINT), token(ENDPOINT_6, cluster=9), token(cluster=8), b"x" * 24]
    ).map(binding_request),
    st.integers(0, 20).map(rtp),
    st.sampled_from([binding_request(token(), transaction=b"x" * 12), binding_response(b"x" * 12)]),
)
HOSTS = st.sampled_from(
    [
        *(CLIENT[0], "198.51.100.8", "10.2.0.2", "127.0.0.1", "203.0.113.10"),
        *(CLIENT_6[0], "::ffff:198.51.100.7", "::1", "fe80::1", ENDPOINT_6[0], "::"),
    ]
)
ADDRESSES = st.tuples(HOSTS, st.integers(0, 65535))
TIMES = st.integers(NOW - 2 * STALE_NS, NOW + STALE_NS)
EVENTS = st.one_of(
    st.builds(FromClient, PAYLOADS, st.builds(FlowKey, ADDRESSES, st.integers(1, 2)), TIMES),
    st.builds(
        FromEndpoint,
        st.binary(max_size=38) | st.builds(spp_header, ADDRESSES, st.sampled_from([VIP, VIP_6])),
        PAYLOADS,
        st.sampled_from(
            [ENDPOINT, OTHER_ENDPOINT, ENDPOINT_6, ("10.9.0.1", 5000), ("10.2.0.1", 5100)]
        ),
        st.integers(5100, 5115),
        TIMES,
    ),
)


def shape(actions: list[Action]) -> Iterator[str]:
    return (type(action).__name__ for action in actions)


@given(st.lists(EVENTS, max_size=12))
def test_any_sequence_of_packets_counts_one_reason_each(events: list[Event]) -> None:
    view = FakeView()
    view.hints.update({3: OUR_KEY})
    allowed = {
        ("Count",),
        *(
            (*before, send, "Count")
            for before, send in itertools.product(
                [(), ("Install",), ("Displace", "Install")], ["SendInner", "SendOuter"]
            )
        ),
    }
    for event in events:
        actions = decide(event, view, NOW)
        assert tuple(shape(actions)) in allowed
        for action in actions:
            if isinstance(action, Install):
                known = view.flows.get(action.key)
                moved = actions[-1] == Count(Reason.SLOW_REPOINTED)
                assert known is None or moved or known.endpoint == action.flow.endpoint
            if isinstance(action, SendInner):
                assert view.owner(action.endpoint) in (7, 9)
        view.carry_out(actions)
