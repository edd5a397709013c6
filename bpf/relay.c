/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The relay's XDP program: one entry, one verdict, one counted reason per packet.

   Parse, look up, decide; only then modify and redirect. A packet is never modified and passed.
   All map calls stand in this file: BCC rewrites only the main one. See README.md for the walk. */

#include "flow.h"
#include "node.h"
#include "packet.h"
#include "reason.h"
#include "rewrite.h"
#include "stun.h"

/* relayctl/datapath/compile.py makes the maps before it compiles; the sizes have to agree with
   relayctl/datapath/maps.py. */
BPF_TABLE_PINNED("hash", struct flow_key, struct flow, flows_v4, MAX_FLOWS, PINS "/flows_v4");
BPF_TABLE_PINNED("array", int, struct nexthop, nexthops, 4096, PINS "/nexthops");
BPF_TABLE_PINNED("array", int, struct control, control, 1, PINS "/control");
BPF_TABLE_PINNED("percpu_array", int, u64, reasons, REASON_COUNTERS, PINS "/reasons");
BPF_TABLE_PINNED("percpu_array", int, struct budget, budgets, 64, PINS "/budgets");
BPF_XDP_REDIRECT_MAP("devmap:" PINS "/egress", int, egress, 64);

/* Doors to user space: packets per unit (1.07 s) and CPU. */
#define FIRST_BUDGET   10000
#define ORPHAN_BUDGET  2000
#define RETURN_BUDGET  2000
#define ODD_BUDGET     200
#define NEXTHOP_BUDGET 2000

#define HEARTBEAT_LIFE 2 /* units; the packet process beats every 0.5 s */

static __always_inline void count(enum reason reason)
{
    int index = reason;
    u64 *counter = reasons.lookup(&index);
    if (counter)
        *counter += 1;
}

/* Hand the packet up, unmodified, if the packet process lives and the budget lasts. Without a
   daemon the kernel would answer in its stead (ICMP port unreachable). */
static __always_inline enum reason punt(enum reason punted, enum reason refused, u32 limit, u32 now)
{
    int only = 0;
    struct control *state = control.lookup(&only);
    if (!state || (s32)(now - state->alive) > HEARTBEAT_LIFE)
        return DROP_NO_DAEMON;

    int index = punted;
    struct budget *budget = budgets.lookup(&index);
    if (!budget)
        return refused;
    if (budget->unit != now) {
        budget->unit = now;
        budget->used = 0;
    }
    if (budget->used >= limit)
        return refused;
    budget->used += 1;
    return punted;
}

/* NULL: not resolved, or the packet is too large for its link. */
static __always_inline struct nexthop *nexthop_for(u16 index, u32 ip_length)
{
    int slot = index;
    struct nexthop *nexthop = nexthops.lookup(&slot);
    return nexthop && nexthop->valid && ip_length <= nexthop->mtu ? nexthop : 0;
}

/* The token gate: the one place that judges a Binding request without a flow before Python reads
   it. Whether the token is authentic is decided there; here its rate is bounded. */
static __always_inline enum reason admit_first(const struct packet *packet, u32 now)
{
    return punt(PUNT_FIRST, DROP_FIRST_BUDGET, FIRST_BUDGET, now);
}

static __always_inline enum reason client_without_flow(const struct packet *packet, u32 now)
{
    if (is_binding_request(packet))
        return admit_first(packet, now);
    u8 *first = payload_at(packet, 1);
    if (first && (is_dtls(*first) || is_rtp_or_rtcp(*first)))
        return punt(PUNT_ORPHAN, DROP_ORPHAN_BUDGET, ORPHAN_BUDGET, now);
    return DROP_NO_FLOW;
}

static __always_inline enum reason outer_leg(struct xdp_md *ctx, const struct packet *packet,
                                             const struct vip *vip, u32 now)
{
    struct flow_key key = {packet->ip->saddr, packet->udp->source, vip->id};
    if (is_bad_source(key.client, key.client_port))
        return DROP_BAD_SOURCE;
    struct flow *flow = flows_v4.lookup(&key);
    if (!flow)
        return client_without_flow(packet, now);

    flow->seen_up = now;
    flow->packets_up += 1;
    flow->bytes_up += packet->payload_length;
    if (!flow->ssrc)
        flow->ssrc = ssrc_of(packet);

    struct nexthop *nexthop = nexthop_for(flow->nexthop_in, packet->ip_length + SPP_SIZE);
    if (!nexthop)
        return punt(PUNT_NEXTHOP, DROP_NEXTHOP_BUDGET, NEXTHOP_BUDGET, now);
    if (!push_spp(ctx, packet, vip, flow, nexthop))
        return DROP_HEADROOM;
    return egress.redirect_map(nexthop->port, 0) == XDP_REDIRECT ? FORWARD : DROP_REDIRECT;
}

static __always_inline enum reason inner_leg(struct xdp_md *ctx, const struct packet *packet,
                                             u32 now)
{
    struct spp *spp = spp_of(packet);
    if (!spp)
        return DROP_NOT_SPP;
    if (!is_allowed(packet->ip->saddr))
        return DROP_NOT_AN_ENDPOINT;
    struct vip vip;
    if (!vip_by_public(spp->proxy.v4, spp->proxy_port, &vip))
        return DROP_FOREIGN_VIP;
    struct flow_key key = {spp->client.v4, spp->client_port, vip.id};
    struct flow *flow = flows_v4.lookup(&key);
    if (!flow || flow->host != packet->ip->saddr || flow->port != packet->udp->source)
        return punt(PUNT_RETURN, DROP_RETURN_BUDGET, RETURN_BUDGET, now);

    flow->seen_down = now;
    flow->packets_down += 1;
    flow->bytes_down += packet->payload_length - SPP_SIZE;
    u8 *first = (void *)(spp + 1);
    if (*first >= NOT_STUN_FROM)
        flow->flags |= FLOW_CONFIRMED;

    struct nexthop *nexthop = nexthop_for(flow->nexthop_out, packet->ip_length - SPP_SIZE);
    if (!nexthop)
        return punt(PUNT_NEXTHOP, DROP_NEXTHOP_BUDGET, NEXTHOP_BUDGET, now);
    if (!strip_spp(ctx, packet, spp, &vip, nexthop))
        return DROP_HEADROOM;
    return egress.redirect_map(nexthop->port, 0) == XDP_REDIRECT ? RETURN : DROP_REDIRECT;
}

/* Which legs the destination belongs to: none, one, or, where the packet shows no ports and VIP and
   inner address are the same, both. */
static __always_inline u32 legs_of_packet(const struct packet *packet, struct vip *vip)
{
    __be32 address = packet->ip->daddr;
    bool is_inner = address == bpf_htonl(INNER_ADDRESS);
    if (!packet->udp)
        return (is_local_vip_address(address) ? OUTER_LEG : 0) | (is_inner ? INNER_LEG : 0);
    if (vip_by_local(address, packet->udp->dest, vip))
        return OUTER_LEG;
    return is_inner && is_inner_port(packet->udp->dest) ? INNER_LEG : 0;
}

static __always_inline enum reason judge(struct xdp_md *ctx)
{
    struct packet packet;
    if (!parse_packet((void *)(long)ctx->data, (void *)(long)ctx->data_end, &packet))
        return PASS_NOT_OURS;
    struct vip vip;
    u32 legs = legs_of_packet(&packet, &vip);
    if (!legs)
        return PASS_NOT_OURS;
    if (legs & ~legs_of_interface(ctx->ingress_ifindex))
        return DROP_WRONG_SIDE;
    if (!is_whole(&packet))
        return DROP_BAD_LENGTH;

    u32 now = bpf_ktime_get_coarse_ns() >> 30;
    if (is_odd(&packet))
        return punt(PUNT_ODD, DROP_ODD_BUDGET, ODD_BUDGET, now);
    if (!packet.udp)
        return DROP_BAD_LENGTH; /* never: is_whole() saw it, but the verifier does not know */
    return legs == OUTER_LEG ? outer_leg(ctx, &packet, &vip, now) : inner_leg(ctx, &packet, now);
}

int ferryline_relay(struct xdp_md *ctx)
{
    enum reason reason = judge(ctx);
    count(reason);
    return action_of(reason);
}
