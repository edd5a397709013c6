"""Why a packet was forwarded, handed to user space or dropped: one closed enum.

The numbers are shared with `bpf/reason.h` (a test compares the two) and are append-only, since
they index counters in pinned maps. 0-63 are counted by the XDP program, 64-127 by the packet
process. Every packet counts exactly one reason in the program, and one more in the packet process
if it was handed up.
"""

import enum


class Reason(enum.IntEnum):
    """The number is the index of the counter; the lower-case name is the metric label."""

    # XDP program: expected in production
    PASS_NOT_OURS = 0  # not addressed to a VIP or to our inner ports: left to the kernel
    FORWARD = 1  # client packet of a known flow, sent to its endpoint
    RETURN = 2  # endpoint packet of a known flow, sent to its client
    PUNT_FIRST = 3  # Binding request without a flow: the packet process reads its token
    PUNT_ORPHAN = 4  # DTLS or RTP without a flow
    PUNT_RETURN = 5  # inner-leg packet whose flow is unknown or belongs to another endpoint
    PUNT_ODD = 6  # fragment, IP options, TTL at its end: the kernel handles it
    PUNT_NEXTHOP = 7  # known flow, but its nexthop is not resolved, or its link too small
    # XDP program: should not happen often
    DROP_FIRST_BUDGET = 8  # Binding requests beyond the budget
    DROP_ORPHAN_BUDGET = 9
    DROP_RETURN_BUDGET = 10
    DROP_ODD_BUDGET = 11
    DROP_NEXTHOP_BUDGET = 12
    DROP_NO_DAEMON = 13  # would be handed up, but the packet process is not alive
    DROP_WRONG_SIDE = 14  # outer-leg packet on an inner interface, or the reverse
    DROP_BAD_SOURCE = 15  # a client address that no client can have
    DROP_NO_FLOW = 16  # neither STUN request, DTLS nor RTP, and no flow
    DROP_NOT_SPP = 17  # inner-leg packet without a Simple Proxy Protocol header
    DROP_NOT_AN_ENDPOINT = 18  # inner-leg packet from outside the allow-lists
    DROP_FOREIGN_VIP = 19  # inner-leg packet for a VIP that is not ours
    DROP_BAD_LENGTH = 20  # IP or UDP length disagrees with the frame
    DROP_HEADROOM = 21  # the driver gave no room for the SPP header
    DROP_REDIRECT = 22  # the egress port is gone
    # XDP program: the token gate and takeover
    DROP_STUN_SHAPE = 23  # Binding request whose USERNAME shows no route token
    DROP_UNKNOWN_KEY = 24  # the token names a key we do not have
    DROP_FORGED = 25  # the token does not verify
    DROP_TOKEN_BUDGET = 26  # authentic, but this token had its share of this second
    PUNT_CONTENDED = 27  # live flow, authentic token of another endpoint
    PUNT_ANSWER = 28  # Binding success response of a contended flow: may prove a takeover
    DROP_ORPHAN_CLIENT_BUDGET = 29  # orphans of one client address beyond its share
    # XDP program: transparent mode
    DROP_REPLY_WITHOUT_FLOW = 30  # from an endpoint to a client that has no flow with it
    DROP_REPLY_NOT_CARRIED = 31  # reply that only the kernel could carry, with a wrong source
    # XDP program: peer relays
    DROP_PEER_LOOP = 32  # a peer's packet whose flow goes by a peer

    # Packet process: expected in production
    SLOW_INSTALLED = 64  # authentic first packet: flow made, packet sent on
    SLOW_FORWARD = 65  # client packet of a flow that exists by now, sent on
    SLOW_RETURN = 66  # endpoint packet of a flow that exists, sent on
    SLOW_RECOVERED = 67  # return packet of an unknown flow: flow made again, packet sent on
    SLOW_HINT = 68  # orphan RTP whose SSRC a flow here knows, sent to that flow's endpoint
    SLOW_TAKEOVER = 69  # authentic token of another endpoint than the live flow's: sent to that one
    SLOW_REPOINTED = 70  # the client answered the other endpoint's check: the flow is that one's
    SLOW_TAKEOVER_CHECK = 71  # STUN of an endpoint that wants a live flow, sent to the client
    SLOW_CACHED = 72  # orphan whose flow Redis knew: flow made, packet sent on
    SLOW_CACHED_HINT = 73  # orphan RTP whose SSRC Redis knew, sent to that flow's endpoint
    # Packet process: should not happen often
    SLOW_MALFORMED = 80  # not a well-formed Binding request
    SLOW_BAD_USERNAME = 81  # its USERNAME does not begin with 24 token characters
    SLOW_FORGED = 82  # the token does not verify
    SLOW_UNKNOWN_KEY = 83  # the token names a key we do not have
    SLOW_UNKNOWN_CLUSTER = 84
    SLOW_NOT_ALLOWED = 85  # the token names an endpoint outside the allow-list
    SLOW_CONTENDED = 86  # no longer counted: takeover was refused as a whole
    SLOW_NOT_OWNER = 87  # return packet of another endpoint than the flow's
    SLOW_ORPHAN = 88  # DTLS or RTP of an address we know nothing about
    SLOW_HINT_BUDGET = 89
    SLOW_TOMBSTONE = 90  # return packet of a flow that an operator deleted
    SLOW_STALE = 91  # waited longer than 1 s in the socket
    SLOW_TABLE_FULL = 92
    SLOW_NOT_SPP = 93
    SLOW_FOREIGN_VIP = 94
    SLOW_BAD_SOURCE = 95
    SLOW_NO_ROUTE = 96  # no route to the endpoint or to the client
    SLOW_SEND_FAILED = 97  # the kernel refused to send it
    SLOW_NO_FLOW = 98  # neither STUN request, DTLS nor RTP
    SLOW_TOKEN_FULL = 99  # this token has all the flows that one call may have
    SLOW_LATE = 100  # orphan that waited for an answer of Redis in vain
    SLOW_LOOKUPS_FULL = 101  # orphan beyond what may wait for Redis

    SLOW_PEER_LOOP = 104  # a peer's packet that would have to go by a peer again
    SLOW_NO_PEER = 105  # no peer relay lives that could carry it

    @property
    def label(self) -> str:
        return self.name.lower()


SLOW_FROM = 64  # reasons from here on are counted by the packet process
COUNTERS = 128  # slots in the counter maps: room to append

PUNTS = frozenset(
    {
        Reason.PUNT_FIRST,
        Reason.PUNT_ORPHAN,
        Reason.PUNT_RETURN,
        Reason.PUNT_NEXTHOP,
        Reason.PUNT_CONTENDED,
        Reason.PUNT_ANSWER,
    }
)
"""Reasons whose packets a socket of the packet process receives, or counts as overflow.

`PUNT_ODD` is not among them: the kernel may reassemble, answer or drop such a packet itself.
"""
