"""Reading SDP offers; answers are written in `transceiver.sdp_answer`. Pure.

This is the whole public face of the package.
"""

from transceiver.sdp.error import Reason, SdpError
from transceiver.sdp.model import (
    Application,
    Audio,
    Direction,
    Offer,
    Section,
    Setup,
    same_bundle,
)
from transceiver.sdp.offer import parse_offer

__all__ = [
    "Application",
    "Audio",
    "Direction",
    "Offer",
    "Reason",
    "SdpError",
    "Section",
    "Setup",
    "parse_offer",
    "same_bundle",
]
