"""Answers offers as a transceiver does, without a call: a JSON list of one client's offers in, the
SDP answer to the last one out.

    python -m tests.browser.answerer < offers.json
"""

import json
import sys

from transceiver.sdp import Offer, continued, parse_offer
from transceiver.sdp_answer import Local, answer

LOCAL = Local(
    ufrag="IWwJ+/iUTKZerg88cJwZO0e0",
    pwd="w" * 24,
    fingerprint="sha-256 " + ":".join(["EF"] * 32),
    ssrc=4294967295,
    cname="c0ffee00c0ffee00",
    candidates=(("203.0.113.10", 3478), ("2001:db8::10", 3478)),
    session_id=2**62 - 1,
)


def answered(offers: list[str]) -> str:
    """Raises `SdpError`."""
    offer: Offer | None = None
    for text in offers:
        new = parse_offer(text)
        offer = new if offer is None else continued(offer, new)
    assert offer is not None
    return answer(offer, LOCAL)


if __name__ == "__main__":
    sys.stdout.write(answered(json.load(sys.stdin)))
