"""A thousand bad offers: each is answered by the rules, or refused with a reason that helps."""

import contextlib

from signaling.offer import read_offer
from signaling.refusal import Refused
from tests.bench_signaling.malformed import NAMING
from tests.bench_signaling.mutants import mutants
from tests.unit.transceiver.sdp.answer_rules import breaches
from transceiver.sdp import SdpError, parse_offer
from transceiver.sdp_answer import Local, answer

LOCAL = Local(
    ufrag="IWwJ+/iUTKZerg88cJwZO0e0",
    pwd="w" * 24,
    fingerprint="sha-256 " + ":".join(["EF"] * 32),
    ssrc=1,
    cname="c0ffee00c0ffee00",
    candidates=(("203.0.113.10", 3478), ("2001:db8::10", 3478)),
    session_id=1,
)


def test_whatever_came_the_transceiver_raises_only_sdp_error() -> None:
    """Without signaling in front."""
    for mutant in mutants(1000, 3):
        with contextlib.suppress(SdpError):
            parse_offer(mutant.offer.decode(errors="replace"))


def test_each_is_answered_by_the_rules_or_refused_by_name() -> None:
    answered = 0
    for mutant in mutants(1000, 4):
        try:
            text = read_offer(mutant.offer)
            offer = parse_offer(text)
        except (Refused, SdpError) as refusal:
            named = NAMING.search(str(refusal)) is not None
        else:
            answered += 1
            broken = breaches(text, answer(offer, LOCAL), LOCAL.candidates)
            named = True
            assert broken == [], mutant.name
        assert named, mutant.name
    assert answered > 200
