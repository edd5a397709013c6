"""Kinds of hostile datagrams, and what a relay has to count for each. Values only."""

import enum
from collections.abc import Mapping

from relayctl.reason import Reason


class Label(enum.StrEnum):
    EMPTY = "empty"
    NOISE_STUN = "noise_stun"  # by first byte, RFC 7983
    NOISE_DTLS = "noise_dtls"
    NOISE_RTP = "noise_rtp"
    NOISE_OTHER = "noise_other"
    SPP_LIKE = "spp_like"
    DTLS_LIKE = "dtls_like"
    RTP_LIKE = "rtp_like"
    RTCP_LIKE = "rtcp_like"
    STUN_OTHER = "stun_other"  # responses, indications, TURN
    STUN_CUT = "stun_cut"
    STUN_TRAILED = "stun_trailed"  # more bytes than it says
    STUN_ODD = "stun_odd"  # a length that is no multiple of 4
    STUN_NO_COOKIE = "stun_no_cookie"
    STUN_BARE = "stun_bare"  # no attribute at all
    STUN_OVERRUN = "stun_overrun"  # an attribute that is longer than the message
    STUN_LATE = "stun_late"  # USERNAME behind too much else
    STUN_UNSIGNED = "stun_unsigned"  # USERNAME behind MESSAGE-INTEGRITY
    NO_COLON = "no_colon"
    SHORT_UFRAG = "short_ufrag"  # 4 characters
    LONG_UFRAG = "long_ufrag"  # 256
    BAD_CHARACTERS = "bad_characters"
    BAD_VERSION = "bad_version"
    FORGED = "forged"
    BENT_TOKEN = "bent_token"
    UNKNOWN_KEY = "unknown_key"
    FOREIGN_CLUSTER = "foreign_cluster"
    NOT_ALLOWED = "not_allowed"
    BENT = "bent"  # some bytes of a request overwritten: any fate will do


_NO_FLOW = (Reason.DROP_NO_FLOW,)
# A few of them reach user space: the share of one client address.
_ORPHAN = (Reason.DROP_ORPHAN_CLIENT_BUDGET,)
_SHAPE = (Reason.DROP_STUN_SHAPE,)
_FORGED = (Reason.DROP_FORGED,)

FATES: Mapping[Label, tuple[Reason, ...]] = {
    Label.EMPTY: _NO_FLOW,
    Label.NOISE_STUN: _NO_FLOW,
    Label.NOISE_DTLS: _ORPHAN,
    Label.NOISE_RTP: _ORPHAN,
    Label.NOISE_OTHER: _NO_FLOW,
    Label.SPP_LIKE: _NO_FLOW,
    Label.DTLS_LIKE: _ORPHAN,
    Label.RTP_LIKE: _ORPHAN,
    Label.RTCP_LIKE: _ORPHAN,
    Label.STUN_OTHER: _NO_FLOW,
    Label.STUN_CUT: _NO_FLOW,
    Label.STUN_TRAILED: _NO_FLOW,
    Label.STUN_ODD: _NO_FLOW,
    Label.STUN_NO_COOKIE: _NO_FLOW,
    Label.STUN_BARE: _SHAPE,
    Label.STUN_OVERRUN: _SHAPE,
    Label.STUN_LATE: _SHAPE,
    Label.STUN_UNSIGNED: _SHAPE,
    Label.NO_COLON: _SHAPE,
    Label.SHORT_UFRAG: _SHAPE,
    Label.LONG_UFRAG: _SHAPE,
    Label.BAD_CHARACTERS: _SHAPE,
    Label.BAD_VERSION: _SHAPE,
    Label.FORGED: _FORGED,
    Label.BENT_TOKEN: _FORGED,
    Label.UNKNOWN_KEY: (Reason.DROP_UNKNOWN_KEY,),
    Label.FOREIGN_CLUSTER: (Reason.PUNT_FIRST, Reason.SLOW_UNKNOWN_CLUSTER),
    Label.NOT_ALLOWED: (Reason.PUNT_FIRST, Reason.SLOW_NOT_ALLOWED),
}
"""From a sender of whom the relay knows no flow."""
