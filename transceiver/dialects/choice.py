"""Which dialect a data channel speaks: chosen with the call, by the channel's label. Pure."""

import enum
from collections.abc import Callable, Mapping
from typing import Any

from transceiver.dialects import realtime, rtvi
from transceiver.dialects.base import Dialect
from transceiver.dialects.beta import Beta, from_beta
from transceiver.dialects.plain import Plain
from transceiver.dialects.realtime import Realtime
from transceiver.dialects.rtvi import Rtvi
from transceiver.events import NewId

Session = Mapping[str, Any]


class DialectName(enum.StrEnum):
    REALTIME = "realtime"
    REALTIME_BETA = "realtime-beta"
    RTVI = "rtvi"
    PLAIN = "plain"


def choose(name: DialectName, label: str, new_id: NewId, stamp: Callable[[], str]) -> Dialect:
    """Channels of another label than the dialect's own are plain."""
    match name, label:
        case DialectName.REALTIME, realtime.LABEL:
            return Realtime(new_id)
        case DialectName.REALTIME_BETA, realtime.LABEL:
            return Beta(new_id)
        case DialectName.RTVI, rtvi.LABEL:
            return Rtvi(new_id, stamp)
    return Plain()


def asked_for(name: DialectName, session: Session) -> Session:
    """The session that a call is made with, in the names of general availability."""
    if name is DialectName.REALTIME_BETA and session:
        told: Session = from_beta({"session": session})["session"]
        return told
    return session
