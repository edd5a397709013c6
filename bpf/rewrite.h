/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Turn an outer-leg packet into an inner-leg one and back: put a Simple Proxy Protocol header
   between the UDP header and the payload, or take it away, and write the headers in front anew.
   Looks nothing up. A packet is changed only when everything about it is decided. */
#pragma once

#include "flow.h"
#include "packet.h"
#include "node.h"

#define SPP_MAGIC 0x56EC
#define SPP_SIZE  38

/* Addresses are IPv6; IPv4 ones are mapped, ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2). */
struct spp_address {
    __be16 zero[5];
    __be16 ones;
    __be32 v4;
} __attribute__((packed, aligned(2)));

struct spp {
    __be16 magic;
    struct spp_address client;
    struct spp_address proxy; /* the public VIP */
    __be16 client_port;
    __be16 proxy_port;
} __attribute__((packed, aligned(2)));

_Static_assert(sizeof(struct spp) == SPP_SIZE, "relayctl/wire/spp.py: HEADER_SIZE");

/* The headers in front of a rewritten packet. */
struct envelope {
    __be32 source;
    __be32 destination;
    __be16 source_port;
    __be16 destination_port;
    u8 tos; /* DSCP and ECN: copied */
    u8 ttl;
    u16 udp_length; /* bytes */
    __be16 udp_checksum;
};

static __always_inline bool is_v4_mapped(const struct spp_address *address)
{
    const __be16 *zero = address->zero;
    return !(zero[0] | zero[1] | zero[2] | zero[3] | zero[4]) && address->ones == 0xffff;
}

/* The SPP header of an inner-leg packet about an IPv4 client, with at least one byte of payload
   behind it, or NULL. */
static __always_inline struct spp *spp_of(const struct packet *packet)
{
    struct spp *spp = payload_at(packet, SPP_SIZE + 1);
    if (!spp || spp->magic != bpf_htons(SPP_MAGIC))
        return 0;
    return is_v4_mapped(&spp->client) && is_v4_mapped(&spp->proxy) ? spp : 0;
}

/* Ones' complement sum of 16-bit words (RFC 1071): fold until no carry is left. Any 64-bit sum
   needs at most these four steps, which leave 0x1fffffffe, 0x2fffd, 0x10000 and 0xffff at most. */
static __always_inline u16 fold(u64 sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* By how much the sum over an inner-leg datagram exceeds that over the same outer-leg datagram.

   The outer sum counts client, VIP and the outer length in the pseudo header and the UDP header.
   The inner one finds client and VIP again inside the SPP header (the words of a mapped address
   add up to those of the IPv4 address, 0xffff being zero), so what remains are our own addresses
   and ports, the magic, and 38 more bytes in both length fields. Where the local VIP differs from
   the public one, so do the sums. */
static __always_inline u16 inner_excess(const struct vip *vip, __be32 source, __be32 destination,
                                        __be16 source_port, __be16 destination_port)
{
    u64 sum = (u64)source + destination + source_port + destination_port;
    sum += bpf_htons(SPP_MAGIC);
    sum += bpf_htons(SPP_SIZE) + bpf_htons(SPP_SIZE);
    sum += vip_excess(vip);
    return fold(sum);
}

/* A UDP checksum after its sum grew by `growth`. 0 means "none" and stays (RFC 768): legal in
   IPv4, so a computed 0 is written as 0xffff. */
static __always_inline __be16 grown_checksum(__be16 checksum, u16 growth)
{
    if (!checksum)
        return 0;
    u16 grown = ~fold((u64)(u16)~checksum + growth);
    return grown ? grown : 0xffff;
}

/* Write Ethernet, IPv4 and UDP headers at the front of the frame. False: no room. */
static __always_inline bool write_headers(struct xdp_md *ctx, const struct nexthop *nexthop,
                                          const struct envelope *envelope)
{
    struct ethhdr *ethernet = (void *)(long)ctx->data;
    struct iphdr *ip = (void *)(ethernet + 1);
    struct udphdr *udp = (void *)(ip + 1);
    if ((void *)(udp + 1) > (void *)(long)ctx->data_end)
        return false;
    __builtin_memcpy(ethernet->h_dest, nexthop->destination_mac, ETH_ALEN);
    __builtin_memcpy(ethernet->h_source, nexthop->source_mac, ETH_ALEN);
    ethernet->h_proto = bpf_htons(ETH_P_IP);

    ip->version = 4;
    ip->ihl = 5;
    ip->tos = envelope->tos;
    ip->tot_len = bpf_htons(sizeof(*ip) + envelope->udp_length);
    ip->id = 0;
    ip->frag_off = bpf_htons(IP_DONT_FRAGMENT);
    ip->ttl = envelope->ttl;
    ip->protocol = IPPROTO_UDP;
    ip->saddr = envelope->source;
    ip->daddr = envelope->destination;
    u64 sum = (u64)bpf_htons(0x4500 | envelope->tos) + ip->tot_len + ip->frag_off;
    sum += bpf_htons(envelope->ttl << 8 | IPPROTO_UDP);
    sum += (u64)envelope->source + envelope->destination;
    ip->check = ~fold(sum);

    udp->source = envelope->source_port;
    udp->dest = envelope->destination_port;
    udp->len = bpf_htons(envelope->udp_length);
    udp->check = envelope->udp_checksum;
    return true;
}

/* Client packet to its flow's endpoint. False: the driver gave no head room; unmodified. */
static __always_inline bool push_spp(struct xdp_md *ctx, const struct packet *packet,
                                     const struct vip *vip, const struct flow *flow,
                                     const struct nexthop *nexthop)
{
    struct iphdr *ip = packet->ip;
    struct udphdr *udp = packet->udp;
    u16 excess = inner_excess(vip, nexthop->source, flow->host, flow->sport, flow->port);
    struct envelope envelope = {
        .source = nexthop->source,
        .destination = flow->host,
        .source_port = flow->sport,
        .destination_port = flow->port,
        .tos = ip->tos,
        .ttl = ip->ttl - 1,
        .udp_length = sizeof(*udp) + SPP_SIZE + packet->payload_length,
        .udp_checksum = grown_checksum(udp->check, excess),
    };
    __be32 client = ip->saddr;
    __be16 client_port = udp->source;

    if (bpf_xdp_adjust_head(ctx, -SPP_SIZE))
        return false;
    struct spp *spp = (void *)(long)ctx->data + sizeof(struct ethhdr) + sizeof(*ip) + sizeof(*udp);
    if ((void *)(spp + 1) > (void *)(long)ctx->data_end)
        return false;
    __builtin_memset(spp, 0, sizeof(*spp));
    spp->magic = bpf_htons(SPP_MAGIC);
    spp->client.ones = 0xffff;
    spp->client.v4 = client;
    spp->proxy.ones = 0xffff;
    spp->proxy.v4 = vip->public_address;
    spp->client_port = client_port;
    spp->proxy_port = vip->public_port;
    return write_headers(ctx, nexthop, &envelope);
}

/* Endpoint packet to the client in its SPP header. False: no such frame; unmodified. */
static __always_inline bool strip_spp(struct xdp_md *ctx, const struct packet *packet,
                                      const struct spp *spp, const struct vip *vip,
                                      const struct nexthop *nexthop)
{
    struct iphdr *ip = packet->ip;
    struct udphdr *udp = packet->udp;
    u16 excess = inner_excess(vip, ip->saddr, ip->daddr, udp->source, udp->dest);
    struct envelope envelope = {
        .source = vip->local_address,
        .destination = spp->client.v4,
        .source_port = vip->local_port,
        .destination_port = spp->client_port,
        .tos = ip->tos,
        .ttl = ip->ttl - 1,
        .udp_length = sizeof(*udp) + packet->payload_length - SPP_SIZE,
        .udp_checksum = grown_checksum(udp->check, ~excess),
    };

    if (bpf_xdp_adjust_head(ctx, SPP_SIZE))
        return false;
    return write_headers(ctx, nexthop, &envelope);
}
