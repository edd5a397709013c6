/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Why a packet was forwarded, handed to user space or dropped. Every packet counts exactly one.
   Numbers index pinned counters and are append-only; relayctl/reason.py has the same ones (a test
   compares) and continues them from 64 on for the packet process. */
#pragma once

/* REASON(name, number, what becomes of the packet) */
#define REASONS(REASON)                                                                         \
    /* Expected in production */                                                                \
    /* Not addressed to a VIP or to our inner ports: left to the kernel. */                     \
    REASON(PASS_NOT_OURS, 0, XDP_PASS)                                                          \
    /* Client packet of a known flow, sent to its endpoint. */                                  \
    REASON(FORWARD, 1, XDP_REDIRECT)                                                            \
    /* Endpoint packet of a known flow, sent to its client. */                                  \
    REASON(RETURN, 2, XDP_REDIRECT)                                                             \
    /* Binding request without a flow: the packet process reads its token. */                   \
    REASON(PUNT_FIRST, 3, XDP_PASS)                                                             \
    /* DTLS, RTP or RTCP without a flow. */                                                     \
    REASON(PUNT_ORPHAN, 4, XDP_PASS)                                                            \
    /* Inner-leg packet whose flow is unknown or belongs to another endpoint. */                \
    REASON(PUNT_RETURN, 5, XDP_PASS)                                                            \
    /* Fragment, IP options, TTL at its end, padding after UDP: the kernel handles it. */       \
    REASON(PUNT_ODD, 6, XDP_PASS)                                                               \
    /* Known flow, but its nexthop is not resolved yet, or the packet exceeds its MTU. */       \
    REASON(PUNT_NEXTHOP, 7, XDP_PASS)                                                           \
    /* Should not happen often */                                                               \
    /* Binding request beyond the budget of PUNT_FIRST. */                                      \
    REASON(DROP_FIRST_BUDGET, 8, XDP_DROP)                                                      \
    /* DTLS, RTP or RTCP beyond the budget of PUNT_ORPHAN. */                                   \
    REASON(DROP_ORPHAN_BUDGET, 9, XDP_DROP)                                                     \
    /* Inner-leg packet beyond the budget of PUNT_RETURN. */                                    \
    REASON(DROP_RETURN_BUDGET, 10, XDP_DROP)                                                    \
    /* Odd packet beyond the budget of PUNT_ODD. */                                             \
    REASON(DROP_ODD_BUDGET, 11, XDP_DROP)                                                       \
    /* Packet of a known flow beyond the budget of PUNT_NEXTHOP. */                             \
    REASON(DROP_NEXTHOP_BUDGET, 12, XDP_DROP)                                                   \
    /* Would be punted, but the packet process is not alive, and the kernel must not answer. */ \
    REASON(DROP_NO_DAEMON, 13, XDP_DROP)                                                        \
    /* Outer-leg packet on an inner interface, or the reverse. */                               \
    REASON(DROP_WRONG_SIDE, 14, XDP_DROP)                                                       \
    /* A client address that no client can have. */                                             \
    REASON(DROP_BAD_SOURCE, 15, XDP_DROP)                                                       \
    /* Neither Binding request, DTLS, RTP nor RTCP, and no flow. */                             \
    REASON(DROP_NO_FLOW, 16, XDP_DROP)                                                          \
    /* Inner-leg packet without a Simple Proxy Protocol header and a payload. */                \
    REASON(DROP_NOT_SPP, 17, XDP_DROP)                                                          \
    /* Inner-leg packet from outside the allow-lists. */                                        \
    REASON(DROP_NOT_AN_ENDPOINT, 18, XDP_DROP)                                                  \
    /* Inner-leg packet for a VIP that is not ours. */                                          \
    REASON(DROP_FOREIGN_VIP, 19, XDP_DROP)                                                      \
    /* IP or UDP length beyond the frame or below the headers: nobody can read it. */           \
    REASON(DROP_BAD_LENGTH, 20, XDP_DROP)                                                       \
    /* The driver gave no room for the SPP header. */                                           \
    REASON(DROP_HEADROOM, 21, XDP_DROP)                                                         \
    /* The egress port is gone. */                                                              \
    REASON(DROP_REDIRECT, 22, XDP_DROP)                                                         \
    /* The token gate and takeover */                                                           \
    /* Binding request whose USERNAME shows no route token. */                                  \
    REASON(DROP_STUN_SHAPE, 23, XDP_DROP)                                                       \
    /* The token names a key that we do not have. */                                            \
    REASON(DROP_UNKNOWN_KEY, 24, XDP_DROP)                                                      \
    /* The token does not verify. */                                                            \
    REASON(DROP_FORGED, 25, XDP_DROP)                                                           \
    /* Authentic, but this token had its share of this unit of time. */                         \
    REASON(DROP_TOKEN_BUDGET, 26, XDP_DROP)                                                     \
    /* Live flow, authentic token of another endpoint. */                                       \
    REASON(PUNT_CONTENDED, 27, XDP_PASS)                                                        \
    /* Binding success response of a contended flow: it may prove a takeover. */                \
    REASON(PUNT_ANSWER, 28, XDP_PASS)                                                           \
    /* DTLS, RTP or RTCP without a flow, beyond the share of one client address. */             \
    REASON(DROP_ORPHAN_CLIENT_BUDGET, 29, XDP_DROP)                                             \
    /* Transparent mode */                                                                      \
    /* From an endpoint to a client that has no flow with it. */                                \
    REASON(DROP_REPLY_WITHOUT_FLOW, 30, XDP_DROP)                                               \
    /* Reply that only the kernel could carry, and would under the endpoint's own address. */   \
    REASON(DROP_REPLY_NOT_CARRIED, 31, XDP_DROP)                                                \
    /* Peer relays */                                                                           \
    /* A peer's packet whose flow goes by a peer: it would go in circles. */                    \
    REASON(DROP_PEER_LOOP, 32, XDP_DROP)

enum reason {
#define REASON(name, number, action) name = number,
    REASONS(REASON)
#undef REASON
};

#define REASON_COUNTERS 128 /* slots in the counter map: room to append */

/* The verdict is a bit in one of two constants: no comparisons, one for each reason. */
static __always_inline int action_of(enum reason reason)
{
#define REASON(name, number, action) (action == XDP_REDIRECT ? 1ULL << number : 0) |
    const u64 redirects = REASONS(REASON) 0;
#undef REASON
#define REASON(name, number, action) (action == XDP_PASS ? 1ULL << number : 0) |
    const u64 passes = REASONS(REASON) 0;
#undef REASON
    if (redirects >> reason & 1)
        return XDP_REDIRECT;
    return passes >> reason & 1 ? XDP_PASS : XDP_DROP;
}
