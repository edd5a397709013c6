import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signaling.offer import check_offer, read_offer
from signaling.refusal import Refused
from tests.unit.signaling.fake_transceiver import OFFER


@pytest.mark.parametrize("offer", [OFFER, OFFER.replace("\r\n", "\n")])
def test_an_offer_comes_back_as_it_is(offer: str) -> None:
    assert read_offer(offer.encode()) == offer


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b" \r\n", "empty"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b'{"sdp": "v=0"}', "line 1 is not v=0"),
        (b"v=0\r\ns=-\r\n", "no m= line"),
        (OFFER.encode() + b"a=x\x00y\r\n", "line 7 has a control character"),
    ],
)
def test_refuses_with_a_reason(body: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason) as caught:
        read_offer(body)
    assert (caught.value.code, caught.value.status) == ("bad_sdp", 400)


def test_refuses_what_utf_8_cannot_carry() -> None:
    with pytest.raises(Refused, match="line 7 has half of a surrogate pair"):
        check_offer(f"{OFFER}a=x:\ud83d\r\n")


@given(st.binary() | st.binary().map(lambda rest: b"v=0\n" + rest))
def test_raises_only_refused(body: bytes) -> None:
    with contextlib.suppress(Refused):
        assert read_offer(body).encode() == body
