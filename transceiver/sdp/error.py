"""Why an offer is refused. Values only."""

import enum


class Reason(enum.StrEnum):
    """Why an offer cannot be answered; also the `code` of the HTTP error."""

    BAD_SDP = "bad_sdp"
    NO_ICE = "no_ice"
    NO_FINGERPRINT = "no_fingerprint"
    NO_AUDIO = "no_audio"
    NO_OPUS = "no_opus"
    ICE_LITE_PEER = "ice_lite_peer"
    BUNDLE_CHANGED = "bundle_changed"

    @property
    def status(self) -> int:
        """HTTP status: 400 unreadable, 406 nothing that we can do, 409 not what the call is."""
        return _STATUS.get(self, 400)


_STATUS = {
    Reason.NO_AUDIO: 406,
    Reason.NO_OPUS: 406,
    Reason.ICE_LITE_PEER: 406,
    Reason.BUNDLE_CHANGED: 409,
}


class SdpError(ValueError):
    """`detail` is for the caller: it names the line or thing and the mend, never a secret."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
