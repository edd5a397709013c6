"""The ICE agent of one call. Sans-IO; this is the whole public face of the package."""

from transceiver.ice.agent import Agent
from transceiver.ice.event import (
    Asked,
    Away,
    Back,
    Dead,
    Drop,
    Event,
    Forgotten,
    PathKey,
    Proven,
    Retired,
    Selected,
    Settled,
)
from transceiver.ice.stun import Credentials

__all__ = [
    "Agent",
    "Asked",
    "Away",
    "Back",
    "Credentials",
    "Dead",
    "Drop",
    "Event",
    "Forgotten",
    "PathKey",
    "Proven",
    "Retired",
    "Selected",
    "Settled",
]
