"""Each reason has its HTTP status."""

import pytest

from transceiver.sdp.error import Reason, SdpError


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (Reason.BAD_SDP, 400),
        (Reason.NO_ICE, 400),
        (Reason.NO_FINGERPRINT, 400),
        (Reason.NO_AUDIO, 406),
        (Reason.NO_OPUS, 406),
        (Reason.ICE_LITE_PEER, 406),
        (Reason.BUNDLE_CHANGED, 409),
    ],
)
def test_status(reason: Reason, status: int) -> None:
    assert reason.status == status


def test_the_error_says_reason_and_detail() -> None:
    error = SdpError(Reason.NO_OPUS, "no codec")
    assert (error.reason, error.detail, str(error)) == ("no_opus", "no codec", "no_opus: no codec")
