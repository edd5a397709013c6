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
#include "token.h"

/* relayctl/datapath/compile.py makes the maps before it compiles; the sizes have to agree with
   relayctl/datapath/maps.py. */
BPF_TABLE_PINNED("hash", struct flow_key_v4, struct flow, flows_v4, MAX_FLOWS, PINS "/flows_v4");
BPF_TABLE_PINNED("hash", struct flow_key_v6, struct flow, flows_v6, MAX_FLOWS_V6, PINS "/flows_v6");
BPF_TABLE_PINNED("array", int, struct nexthop, nexthops, 4096, PINS "/nexthops");
BPF_TABLE_PINNED("array", int, struct route_key, keys, 32, PINS "/keys");
BPF_TABLE_PINNED("array", int, struct control, control, 1, PINS "/control");
BPF_TABLE_PINNED("percpu_array", int, u64, reasons, REASON_COUNTERS, PINS "/reasons");
BPF_TABLE_PINNED("percpu_array", int, struct budget, budgets, BUDGET_SLOTS, PINS "/budgets");
#if HAS_PEERS
BPF_TABLE_PINNED("array", int, struct peer, peers, PEER_SLOTS, PINS "/peers");
#endif
BPF_XDP_REDIRECT_MAP("devmap:" PINS "/egress", int, egress, 64);
BPF_ARRAY(clock, u64, 1); /* unit << 32 | the tick from which on it may be another */

/* Doors to user space: packets per unit (1.07 s) and CPU. The scarce thing is a token, each of
   which costs its owner a call; sources are free to spoof, and so get no share of their own. */
#define FIRST_BUDGET   24000
#define TOKEN_SHARE    16 /* of FIRST_BUDGET, for one token */
#define ORPHAN_BUDGET  2000
#define ORPHAN_SHARE   64 /* for one client address: all behind one NAT may move at once */
#define RETURN_BUDGET  10000
#define RETURN_SHARE   2000 /* for one endpoint */
#define ODD_BUDGET     200
#define NEXTHOP_BUDGET 2000
#define ANSWERS        8 /* for one contended flow */

#define UNIT_NS (1 << 30)
#define TICK_NS 10000000 /* of the slowest tick, 100 Hz */

#define HEARTBEAT_LIFE 2 /* units; the packet process beats every 0.5 s */
#define CONTENDED_LIFE 5 /* units */

static __always_inline void count(enum reason reason)
{
    int index = reason;
    u64 *counter = reasons.lookup(&index);
    if (counter)
        *counter += 1;
}

/* The unit of time that it is. Looking at the clock takes as long as finding the flow, the kernel's
   counter of ticks nothing. A tick takes 10 ms at most, so for as many ticks as go into what is
   left of a unit the answer holds; in the last 10 ms everybody looks. */
static __always_inline u32 current_unit(void)
{
    int only = 0;
    u64 *known = clock.lookup(&only);
    if (!known)
        return 0;
    u64 last = *known;
    u32 tick = bpf_jiffies64();
    if (last && (u32)last - tick - 1 < UNIT_NS / TICK_NS)
        return last >> 32;
    u64 now = bpf_ktime_get_ns();
    u32 left = UNIT_NS - (now & (UNIT_NS - 1));
    *known = now / UNIT_NS << 32 | (u32)(tick + left / TICK_NS);
    return now / UNIT_NS;
}

/* Without a packet process the kernel would answer what is handed up (ICMP port unreachable). */
static __always_inline bool is_alive(u32 now)
{
    int only = 0;
    struct control *state = control.lookup(&only);
    return state && (s32)(now - state->alive) <= HEARTBEAT_LIFE;
}

static __always_inline bool spend(int slot, u32 limit, u32 now)
{
    struct budget *budget = budgets.lookup(&slot);
    if (!budget)
        return false;
    if (budget->unit != now) {
        budget->unit = now;
        budget->used = 0;
    }
    if (budget->used >= limit)
        return false;
    budget->used += 1;
    return true;
}

/* Hand the packet up, unmodified, if the packet process lives and the budget lasts. */
static __always_inline enum reason punt(enum reason punted, enum reason refused, u32 limit, u32 now)
{
    if (!is_alive(now))
        return DROP_NO_DAEMON;
    return spend(punted, limit, now) ? punted : refused;
}

static __always_inline enum reason punt_odd(u32 now)
{
    return punt(PUNT_ODD, DROP_ODD_BUDGET, ODD_BUDGET, now);
}

static __always_inline enum reason punt_nexthop(u32 now)
{
    return punt(PUNT_NEXTHOP, DROP_NEXTHOP_BUDGET, NEXTHOP_BUDGET, now);
}

static __always_inline enum reason punt_orphan(const struct address *client, bool is_v6, u32 now)
{
    u32 x = client->word[3];
    if (is_v6)
        x ^= client->word[0] ^ client->word[1] ^ client->word[2];
    x = bpf_ntohl(x);
    if (!is_alive(now))
        return DROP_NO_DAEMON;
    if (!spend(FIRST_ORPHAN_SLOT + ((x ^ x >> 16) % ORPHAN_BUCKETS), ORPHAN_SHARE, now))
        return DROP_ORPHAN_CLIENT_BUDGET;
    return spend(PUNT_ORPHAN, ORPHAN_BUDGET, now) ? PUNT_ORPHAN : DROP_ORPHAN_BUDGET;
}

static __always_inline enum reason punt_return(const struct packet *packet, u32 now)
{
    __be32 host = packet->is_v6 ? packet->ipv6->saddr.s6_addr32[3] : packet->ip->saddr;
    u32 y = bpf_ntohl(host) ^ bpf_ntohs(packet->udp->source);
    if (!is_alive(now))
        return DROP_NO_DAEMON;
    if (!spend(FIRST_RETURN_SLOT + ((y ^ y >> 16) % RETURN_BUCKETS), RETURN_SHARE, now))
        return DROP_RETURN_BUDGET;
    return spend(PUNT_RETURN, RETURN_BUDGET, now) ? PUNT_RETURN : DROP_RETURN_BUDGET;
}

/* NULL: not resolved, or the packet is too large for its link. */
static __always_inline struct nexthop *nexthop_for(u16 index, u32 ip_length)
{
    int slot = index;
    struct nexthop *nexthop = nexthops.lookup(&slot);
    return nexthop && nexthop->valid && ip_length <= nexthop->mtu ? nexthop : 0;
}

static __always_inline enum reason redirect(const struct nexthop *nexthop, enum reason reason)
{
    return egress.redirect_map(nexthop->port, 0) == XDP_REDIRECT ? reason : DROP_REDIRECT;
}

static __always_inline struct flow *flow_of(const struct address *client, bool is_v6, __be16 port,
                                            u16 vip)
{
    if (is_v6) {
        struct flow_key_v6 key = {.client = *client, .client_port = port, .vip = vip};
        return flows_v6.lookup(&key);
    }
    struct flow_key_v4 key = {client->word[3], port, vip};
    return flows_v4.lookup(&key);
}

/* The token gate: whose route does a Binding request carry, and is it authentic? FORWARD: yes. */
static __always_inline enum reason open_request(const u8 *text, struct token *token,
                                                struct route *route)
{
    if (!text || !decode_token(text, token))
        return DROP_STUN_SHAPE;
    int id = key_id_of(token);
    struct route_key *key = keys.lookup(&id);
    if (!key || !key->valid)
        return DROP_UNKNOWN_KEY;
    return open_token(token, key, route) ? FORWARD : DROP_FORGED;
}

static __always_inline enum reason punt_request(const struct token *token, enum reason punted,
                                                u32 now)
{
    if (!is_alive(now))
        return DROP_NO_DAEMON;
    if (!spend(FIRST_TOKEN_SLOT + (token->tag % TOKEN_BUCKETS), TOKEN_SHARE, now))
        return DROP_TOKEN_BUDGET;
    return spend(PUNT_FIRST, FIRST_BUDGET, now) ? punted : DROP_FIRST_BUDGET;
}

/* Where a slot leads; NULL: nowhere. */
static __always_inline struct peer *peer_of(u32 slot)
{
#if HAS_PEERS
    int index = slot;
    struct peer *peer = peers.lookup(&index);
    return peer && peer->valid ? peer : 0;
#else
    return 0;
#endif
}

static __always_inline bool is_to_peer(const struct flow *flow)
{
    return HAS_PEERS && flow->flags & FLOW_TO_PEER;
}

static __always_inline bool is_route_of(const struct flow *flow, const struct route *route)
{
    if (is_to_peer(flow)) /* the peer judges which endpoint it is */
        return route->cluster == flow->cluster;
    return route->host == flow->host && route->port == flow->port &&
           route->cluster == flow->cluster;
}

/* A Binding request, with or without a flow. FORWARD: it is the flow's own, or that of another call
   (or an ICE restart) at the same endpoint, whose token the flow keeps from here on. */
static __always_inline enum reason admit_request(const struct packet *packet, struct flow *flow,
                                                 u32 now)
{
    const u8 *text = token_of(packet);
    u64 prefix = 0;
    if (text)
        __builtin_memcpy(&prefix, text, sizeof(prefix));
    if (flow && prefix && prefix == flow->token)
        return FORWARD;
    struct token token;
    struct route route;
    enum reason reason = open_request(text, &token, &route);
    if (reason != FORWARD)
        return reason;
    if (flow && is_route_of(flow, &route)) {
        flow->token = prefix;
        return FORWARD;
    }
    reason = punt_request(&token, flow ? PUNT_CONTENDED : PUNT_FIRST, now);
    if (flow && reason == PUNT_CONTENDED)
        flow->contended = now;
    return reason;
}

/* A packet that has no flow and asks for none. */
static __always_inline enum reason orphan(const struct packet *packet, const struct address *client,
                                          u32 now)
{
    u8 *first = payload_at(packet, 1);
    if (first && (is_dtls(*first) || is_rtp_or_rtcp(*first)))
        return punt_orphan(client, packet->is_v6, now);
    return DROP_NO_FLOW;
}

/* A client's Binding success response may prove that it wants the endpoint that contends. */
static __always_inline bool is_awaited_answer(const struct packet *packet, struct flow *flow,
                                              u32 now)
{
    if (!flow->contended || (s32)(now - flow->contended) > CONTENDED_LIFE)
        return false;
    if (!is_stun(packet, STUN_BINDING_SUCCESS) || !is_alive(now))
        return false;
    u32 punted = flow->answers >> 8 == (now & 0xffffff) ? flow->answers & 0xff : 0;
    if (punted >= ANSWERS)
        return false;
    flow->answers = now << 8 | (punted + 1);
    return true;
}

/* What a client sends, whoever delivered it: admitted, stamped and counted. FORWARD: send it on. */
static __always_inline enum reason from_client(const struct packet *packet, struct flow *flow,
                                               const struct address *client, __be16 port, u32 now)
{
    if (!flow && is_bad_source(client, packet->is_v6, port))
        return DROP_BAD_SOURCE;
    if (is_stun(packet, STUN_BINDING_REQUEST)) {
        enum reason reason = admit_request(packet, flow, now);
        if (reason != FORWARD)
            return reason;
    }
    if (!flow)
        return orphan(packet, client, now);

    flow->seen_up = now;
    flow->packets_up += 1;
    flow->bytes_up += packet->payload_length;
    if (!flow->ssrc)
        flow->ssrc = ssrc_of(packet);
    return is_awaited_answer(packet, flow, now) ? PUNT_ANSWER : FORWARD;
}

static __always_inline enum reason forward_spp(struct xdp_md *ctx, const struct packet *packet,
                                               const struct vip *vip, const struct flow *flow,
                                               u32 now)
{
    struct address endpoint = mapped(flow->host);
    bool to_v6 = v6_prefix(flow->cluster, &endpoint);
    u16 index = flow->nexthop_in;
    endpoint.word[3] = flow->host;
    if (is_to_peer(flow)) {
        struct peer *peer = peer_of(bpf_ntohl(flow->host) % PEER_BACK);
        if (!peer)
            return punt_nexthop(now);
        endpoint = peer->address;
        to_v6 = !is_mapped(&endpoint);
        index = peer->nexthop;
    }
    if (to_v6 && !packet->udp->check) /* none is not allowed there: the kernel computes it */
        return punt_odd(now);
    u32 grown = packet->ip_length + SPP_SIZE + header_length(to_v6) - header_length(packet->is_v6);
    struct nexthop *nexthop = nexthop_for(index, grown);
    if (!nexthop)
        return punt_nexthop(now);
    bool is_pushed = to_v6 ? push_spp(ctx, packet, vip, flow, &endpoint, true, nexthop)
                           : push_spp(ctx, packet, vip, flow, &endpoint, false, nexthop);
    return is_pushed ? redirect(nexthop, FORWARD) : DROP_HEADROOM;
}

static __always_inline enum reason forward_transparent(struct xdp_md *ctx,
                                                       const struct packet *packet,
                                                       const struct flow *flow, u32 now)
{
    struct address endpoint = mapped(flow->host);
    bool to_v6 = v6_prefix(flow->cluster, &endpoint);
    endpoint.word[3] = flow->host;
    struct nexthop *nexthop = nexthop_for(flow->nexthop_in, packet->ip_length);
    if (!nexthop || to_v6 != packet->is_v6)
        return punt_nexthop(now);
    if (!rewrite_in_place(ctx, packet, false, &endpoint, flow->port, nexthop))
        return DROP_HEADROOM;
    return redirect(nexthop, FORWARD);
}

static __always_inline enum reason outer_leg(struct xdp_md *ctx, const struct packet *packet,
                                             const struct vip *vip, u32 now)
{
    struct address client = source_of(packet);
    struct flow *flow = flow_of(&client, packet->is_v6, packet->udp->source, vip->id);
    enum reason reason = from_client(packet, flow, &client, packet->udp->source, now);
    if (reason != FORWARD || !flow)
        return reason;
    return TRANSPARENT ? forward_transparent(ctx, packet, flow, now)
                       : forward_spp(ctx, packet, vip, flow, now);
}

static __always_inline bool is_from_endpoint(const struct packet *packet, const struct flow *flow)
{
    struct address endpoint = {};
    if (is_to_peer(flow)) {
        struct peer *peer = peer_of(bpf_ntohl(flow->host) % PEER_BACK);
        struct address sender = source_of(packet);
        return peer && flow->port == packet->udp->source && is_same(&peer->address, &sender);
    }
    bool is_v6 = v6_prefix(flow->cluster, &endpoint);
    if (is_v6 != packet->is_v6 || flow->port != packet->udp->source)
        return false;
    if (!is_v6)
        return flow->host == packet->ip->saddr;
    endpoint.word[3] = flow->host;
    struct address source = source_of(packet);
    return is_same(&endpoint, &source);
}

static __always_inline void count_return(struct flow *flow, u32 bytes, const u8 *first, u32 now)
{
    flow->seen_down = now;
    flow->packets_down += 1;
    flow->bytes_down += bytes;
    if (first && *first >= NOT_STUN_FROM && !(flow->flags & FLOW_CONFIRMED))
        flow->flags |= FLOW_CONFIRMED;
}

/* Between a peer relay and an endpoint: SPP stays. */
static __always_inline enum reason pass_on(struct xdp_md *ctx, const struct packet *packet,
                                           const struct address *to, __be16 to_port,
                                           const struct flow *flow, u16 index, enum reason reason,
                                           u32 now)
{
    const bool to_v6 = !is_mapped(to);
    if (to_v6 && !packet->udp->check)
        return punt_odd(now);
    u32 length = packet->ip_length + header_length(to_v6) - header_length(packet->is_v6);
    struct nexthop *nexthop = nexthop_for(index, length);
    if (!nexthop)
        return punt_nexthop(now);
    __be16 sport = flow->sport;
    bool is_passed = to_v6 ? pass_on_spp(ctx, packet, to, to_port, sport, true, nexthop)
                           : pass_on_spp(ctx, packet, to, to_port, sport, false, nexthop);
    return is_passed ? redirect(nexthop, reason) : DROP_HEADROOM;
}

/* A client packet that a peer relay delivers, for one of its VIPs. */
static __always_inline enum reason from_peer(struct xdp_md *ctx, const struct packet *packet,
                                             const struct spp *spp, u8 peer, struct flow *flow,
                                             u32 now)
{
    struct address client = read_address(&spp->client);
    struct packet inside = *packet;
    inside.payload += SPP_SIZE;
    inside.payload_length -= SPP_SIZE;
    inside.is_v6 = !is_mapped(&client);
    if (flow && is_to_peer(flow))
        return DROP_PEER_LOOP;
    enum reason reason = from_client(&inside, flow, &client, spp->client_port, now);
    if (reason != FORWARD || !flow)
        return reason;
    if (flow->back != peer)
        flow->back = peer;
    struct address endpoint = mapped(flow->host);
    v6_prefix(flow->cluster, &endpoint);
    endpoint.word[3] = flow->host;
    return pass_on(ctx, packet, &endpoint, flow->port, flow, flow->nexthop_in, FORWARD, now);
}

/* An endpoint's answer to the client of a peer relay. */
static __always_inline enum reason to_peer(struct xdp_md *ctx, const struct packet *packet,
                                           const struct spp *spp, struct flow *flow, u32 now)
{
    if (!flow || !is_from_endpoint(packet, flow))
        return punt_return(packet, now);
    struct peer *peer = flow->back ? peer_of(PEER_BACK + flow->back) : 0;
    if (!peer)
        return punt_return(packet, now);
    count_return(flow, packet->payload_length - SPP_SIZE, (void *)(spp + 1), now);
    struct address to = peer->address;
    return pass_on(ctx, packet, &to, flow->sport, flow, peer->nexthop, RETURN, now);
}

static __always_inline enum reason return_spp(struct xdp_md *ctx, const struct packet *packet,
                                              u32 now)
{
    struct spp *spp = spp_of(packet);
    if (!spp)
        return DROP_NOT_SPP;
    struct address sender = source_of(packet);
    u8 peer = HAS_PEERS ? peer_at(&sender, packet->is_v6) : 0;
    if (peer ? !is_inner_port(packet->udp->source) : !is_allowed(&sender, packet->is_v6, 0))
        return DROP_NOT_AN_ENDPOINT;
    struct address client = read_address(&spp->client), proxy = read_address(&spp->proxy);
    const bool to_v6 = !is_mapped(&client);
    struct vip vip = {};
    bool is_ours = vip_by_public(&proxy, to_v6, spp->proxy_port, &vip);
    if (HAS_PEERS && !is_ours)
        vip.id = foreign_vip(&proxy, to_v6, spp->proxy_port, peer);
    if (!is_ours && (!HAS_PEERS || !vip.id))
        return DROP_FOREIGN_VIP;
    struct flow *flow = flow_of(&client, to_v6, spp->client_port, vip.id);
    if (HAS_PEERS && !is_ours)
        return peer ? from_peer(ctx, packet, spp, peer, flow, now)
                    : to_peer(ctx, packet, spp, flow, now);
    if (!flow || !is_from_endpoint(packet, flow))
        return punt_return(packet, now);

    count_return(flow, packet->payload_length - SPP_SIZE, (void *)(spp + 1), now);
    if (to_v6 && !packet->udp->check)
        return punt_odd(now);
    u32 shrunk = packet->ip_length - SPP_SIZE + header_length(to_v6) - header_length(packet->is_v6);
    struct nexthop *nexthop = nexthop_for(flow->nexthop_out, shrunk);
    if (!nexthop)
        return punt_nexthop(now);
    bool is_stripped = to_v6 ? strip_spp(ctx, packet, spp, &vip, true, nexthop)
                             : strip_spp(ctx, packet, spp, &vip, false, nexthop);
    return is_stripped ? redirect(nexthop, RETURN) : DROP_HEADROOM;
}

/* The packet is in transit here: passed up, the kernel would send it on under the endpoint's own
   address, which the client does not know. */
static __always_inline enum reason return_transparent(struct xdp_md *ctx,
                                                      const struct packet *packet, u32 now)
{
    struct vip vip;
    if (!vip_of_family(packet->is_v6, &vip))
        return DROP_REPLY_WITHOUT_FLOW;
    struct address client = destination_of(packet);
    struct flow *flow = flow_of(&client, packet->is_v6, packet->udp->dest, vip.id);
    if (!flow || !is_from_endpoint(packet, flow))
        return DROP_REPLY_WITHOUT_FLOW;
    count_return(flow, packet->payload_length, payload_at(packet, 1), now);
    struct nexthop *nexthop = nexthop_for(flow->nexthop_out, packet->ip_length);
    if (!nexthop)
        return DROP_REPLY_NOT_CARRIED;
    if (!rewrite_in_place(ctx, packet, true, &vip.local_address, vip.local_port, nexthop))
        return DROP_HEADROOM;
    return redirect(nexthop, RETURN);
}

/* Which legs a packet belongs to: none, one, or, where it shows no ports and VIP and inner address
   are the same, both. */
static __always_inline u32 legs_of_packet(const struct packet *packet, struct vip *vip)
{
    const bool is_v6 = packet->is_v6;
    struct address destination = destination_of(packet);
    if (packet->udp && vip_by_local(&destination, is_v6, packet->udp->dest, vip))
        return OUTER_LEG;
    if (TRANSPARENT && packet->udp) {
        struct address source = source_of(packet);
        bool is_reply = is_allowed(&source, is_v6, bpf_ntohs(packet->udp->source)) &&
                        packet->udp->source && !is_own(&destination, is_v6);
        return is_reply ? INNER_LEG : 0;
    }
    bool is_inner = !TRANSPARENT && is_inner_address(&destination, is_v6);
    if (packet->udp)
        return is_inner && is_inner_port(packet->udp->dest) ? INNER_LEG : 0;
    return (is_local_vip_address(&destination, is_v6) ? OUTER_LEG : 0) | (is_inner ? INNER_LEG : 0);
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
    if (legs & ~legs_of_interface(ctx->ingress_ifindex, packet.tags))
        return DROP_WRONG_SIDE;
    if (!is_whole(&packet))
        return DROP_BAD_LENGTH;

    u32 now = current_unit();
    if (is_odd(&packet))
        return TRANSPARENT && legs == INNER_LEG ? DROP_REPLY_NOT_CARRIED : punt_odd(now);
    if (!packet.udp)
        return DROP_BAD_LENGTH; /* never: is_whole() saw it, but the verifier does not know */
    if (legs == OUTER_LEG)
        return outer_leg(ctx, &packet, &vip, now);
    return TRANSPARENT ? return_transparent(ctx, &packet, now) : return_spp(ctx, &packet, now);
}

int ferryline_relay(struct xdp_md *ctx)
{
    enum reason reason = judge(ctx);
    count(reason);
    return action_of(reason);
}
