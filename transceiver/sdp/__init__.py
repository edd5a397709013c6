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
    continued,
)
from transceiver.sdp.offer import parse_offer, with_credentials

__all__ = [
    "Application",
    "Audio",
    "Direction",
    "Offer",
    "Reason",
    "SdpError",
    "Section",
    "Setup",
    "continued",
    "parse_offer",
    "with_credentials",
]
