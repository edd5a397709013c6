/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Turn an outer-leg packet into an inner-leg one and back. Looks nothing up. A packet is changed
   only when everything about it is decided.

   With SPP: a Simple Proxy Protocol header comes between the UDP header and the payload, or goes,
   and the headers in front are written anew, in the family of the other leg. Transparent: only the
   endpoint's or our own address changes, in place. */
#pragma once

#include "flow.h"
#include "node.h"
#include "packet.h"

#define SPP_MAGIC 0x56EC
#define SPP_SIZE  38

struct spp {
    __be16 magic;
    struct address client; /* IPv4 ones are mapped */
    struct address proxy;  /* the public VIP */
    __be16 client_port;
    __be16 proxy_port;
} __attribute__((packed, aligned(2)));

_Static_assert(sizeof(struct spp) == SPP_SIZE, "relayctl/wire/spp.py: HEADER_SIZE");

/* The headers in front of a rewritten packet. */
struct envelope {
    struct address source;
    struct address destination;
    __be16 source_port;
    __be16 destination_port;
    __be16 udp_checksum;
    u16 udp_length; /* bytes */
    u8 traffic;     /* DSCP and ECN: copied */
    u8 ttl;
    bool is_v6;
};

/* The SPP header of a plain inner-leg packet with at least one byte of payload behind it and client
   and proxy of one family, or NULL. */
static __always_inline struct spp *spp_of(const struct packet *packet)
{
    struct spp *spp = payload_at(packet, SPP_SIZE + 1);
    if (!spp || spp->magic != bpf_htons(SPP_MAGIC))
        return 0;
    struct address client = read_address(&spp->client), proxy = read_address(&spp->proxy);
    return is_mapped(&client) == is_mapped(&proxy) ? spp : 0;
}

/* Ones' complement sum of 16-bit words (RFC 1071): fold until no carry is left. Fewer than 2^16
   words of 32 bits are added, so the steps leave 0x10000fffe, 0x1fffe and 0xffff at most. */
static __always_inline u16 fold(u64 sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* The words of a mapped address add up to those of the IPv4 address: 0xffff is zero. */
static __always_inline u64 sum_of(const struct address *address, bool is_v6)
{
    if (!is_v6)
        return address->word[3];
    return (u64)address->word[0] + address->word[1] + address->word[2] + address->word[3];
}

/* Complements of the words: adding them takes the address away. */
static __always_inline u64 negative_sum_of(const struct address *address, bool is_v6)
{
    if (!is_v6)
        return (u32)~address->word[3];
    return (u64)(u32)~address->word[0] + (u32)~address->word[1] + (u32)~address->word[2] +
           (u32)~address->word[3];
}

/* By how much the sum over an inner-leg datagram exceeds that over the same outer-leg datagram.

   The outer sum counts client, VIP and the outer length in the pseudo header and the UDP header.
   The inner one finds client and VIP again inside the SPP header, so what remains are the inner
   addresses and ports, the magic, and 38 more bytes in both length fields. Where the local VIP
   differs from the public one, so do the sums. That holds for every mix of families. */
static __always_inline u16 inner_excess(const struct vip *vip, bool vip_is_v6, u64 inner_sum)
{
    u64 sum = inner_sum + bpf_htons(SPP_MAGIC) + bpf_htons(SPP_SIZE) + bpf_htons(SPP_SIZE);
    sum += sum_of(&vip->public_address, vip_is_v6) + vip->public_port;
    sum += negative_sum_of(&vip->local_address, vip_is_v6) + (u16)~vip->local_port;
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

static __always_inline u8 traffic_of(const struct packet *packet)
{
    if (!packet->is_v6)
        return packet->ip->tos;
    return packet->ipv6->priority << 4 | packet->ipv6->flow_lbl[0] >> 4;
}

static __always_inline u8 ttl_of(const struct packet *packet)
{
    return packet->is_v6 ? packet->ipv6->hop_limit : packet->ip->ttl;
}

/* Bytes in front of the IP header on the way to a nexthop with these VLAN ids. */
static __always_inline u32 link_length_with(u16 outer_tag, u16 inner_tag)
{
    return sizeof(struct ethernet) + (outer_tag ? sizeof(struct vlan) : 0) +
           (inner_tag ? sizeof(struct vlan) : 0);
}

/* Both at once: they stand in the nexthop as in the frame. */
static __always_inline void copy_macs(struct ethernet *ethernet, const struct nexthop *nexthop)
{
    _Static_assert(__builtin_offsetof(struct nexthop, source_mac) ==
                       __builtin_offsetof(struct nexthop, destination_mac) + ETH_ALEN,
                   "as in an Ethernet header");
    const void *from = nexthop->destination_mac;
    void *to = ethernet->destination;
    *(u64 *)to = *(const u64 *)from;
    *(u32 *)(to + 8) = *(const u32 *)(from + 8);
}

/* Write Ethernet header and VLAN tags at the front of the frame, which has room for them. An outer
   tag of two is a service tag (IEEE 802.1ad). */
static __always_inline void write_link(struct ethernet *ethernet, const struct nexthop *nexthop,
                                       u16 outer_tag, u16 inner_tag, bool is_v6)
{
    __be16 type = is_v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
    struct vlan *tags = (void *)(ethernet + 1);
    copy_macs(ethernet, nexthop);
    if (!outer_tag) {
        ethernet->type = type;
        return;
    }
    ethernet->type = bpf_htons(inner_tag ? ETH_P_8021AD : ETH_P_8021Q);
    tags[0].control = bpf_htons(outer_tag);
    tags[0].type = inner_tag ? bpf_htons(ETH_P_8021Q) : type;
    if (inner_tag) {
        tags[1].control = bpf_htons(inner_tag);
        tags[1].type = type;
    }
}

/* Word by word (RFC 791 section 3.1): identification 0, "don't fragment", no options. */
static __always_inline void write_ipv4(__be32 *words, const struct envelope *envelope)
{
    u32 length = sizeof(struct iphdr) + envelope->udp_length;
    words[0] = bpf_htonl(0x45000000 | envelope->traffic << 16 | length);
    words[1] = bpf_htonl(IP_DONT_FRAGMENT);
    words[3] = envelope->source.word[3];
    words[4] = envelope->destination.word[3];
    __be32 lifetime = bpf_htonl(envelope->ttl << 24 | IPPROTO_UDP << 16);
    u64 sum = (u64)words[0] + words[1] + lifetime + words[3] + words[4];
    words[2] = lifetime | bpf_htonl(bpf_ntohs(~fold(sum)));
}

static __always_inline void write_ipv6(struct ipv6hdr *ip, const struct envelope *envelope)
{
    *(__be32 *)ip = bpf_htonl(0x60000000 | (u32)envelope->traffic << 20); /* no flow label */
    ip->payload_len = bpf_htons(envelope->udp_length);
    ip->nexthdr = IPPROTO_UDP;
    ip->hop_limit = envelope->ttl;
    write_address(&ip->saddr, &envelope->source);
    write_address(&ip->daddr, &envelope->destination);
}

/* Bytes from the IP header to the payload. */
static __always_inline u32 header_length(bool is_v6)
{
    return (is_v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) + sizeof(struct udphdr);
}

/* Write all headers at the front of a frame that moved by `grown` bytes. Returns where `behind`
   bytes of payload begin, or NULL: no room. */
static __always_inline void *write_headers(struct xdp_md *ctx, const struct nexthop *nexthop,
                                           const struct envelope *envelope, u16 outer_tag,
                                           u16 inner_tag, u32 behind)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    void *network = data + link_length_with(outer_tag, inner_tag);
    struct udphdr *udp = network + header_length(envelope->is_v6) - sizeof(*udp);
    if (data + sizeof(struct ethernet) + MAX_TAGS * sizeof(struct vlan) > end ||
        (void *)(udp + 1) + behind > end)
        return 0;
    write_link(data, nexthop, outer_tag, inner_tag, envelope->is_v6);
    if (envelope->is_v6)
        write_ipv6(network, envelope);
    else
        write_ipv4(network, envelope);
    udp->source = envelope->source_port;
    udp->dest = envelope->destination_port;
    udp->len = bpf_htons(envelope->udp_length);
    udp->check = envelope->udp_checksum;
    return udp + 1;
}

/* Client packet to `endpoint`. False: no head room; unmodified. */
static __always_inline bool push_spp(struct xdp_md *ctx, const struct packet *packet,
                                     const struct vip *vip, const struct flow *flow,
                                     const struct address *endpoint, const bool to_v6,
                                     const struct nexthop *nexthop)
{
    const bool from_v6 = packet->is_v6;
    struct udphdr *udp = packet->udp;
    struct envelope envelope = {
        .source = inner_address(to_v6),
        .destination = *endpoint,
        .source_port = flow->sport,
        .destination_port = flow->port,
        .udp_length = sizeof(*udp) + SPP_SIZE + packet->payload_length,
        .traffic = traffic_of(packet),
        .ttl = ttl_of(packet) - 1,
        .is_v6 = to_v6,
    };
    u64 inner_sum = sum_of(&envelope.source, to_v6) + sum_of(endpoint, to_v6) + flow->sport;
    u16 excess = inner_excess(vip, from_v6, inner_sum + flow->port);
    envelope.udp_checksum = grown_checksum(udp->check, excess);
    struct address client = source_of(packet);
    __be16 client_port = udp->source;
    u16 outer_tag = nexthop->tags[0], inner_tag = nexthop->tags[1];

    int growth = SPP_SIZE + link_length_with(outer_tag, inner_tag) + header_length(to_v6);
    growth -= packet->link_length + header_length(from_v6);
    if (bpf_xdp_adjust_head(ctx, -growth))
        return false;
    struct spp *spp = write_headers(ctx, nexthop, &envelope, outer_tag, inner_tag, SPP_SIZE);
    if (!spp)
        return false;
    spp->magic = bpf_htons(SPP_MAGIC);
    write_address(&spp->client, &client);
    write_address(&spp->proxy, &vip->public_address);
    spp->client_port = client_port;
    spp->proxy_port = vip->public_port;
    return true;
}

/* Endpoint packet to the client in its SPP header. False: no such frame; unmodified. */
static __always_inline bool strip_spp(struct xdp_md *ctx, const struct packet *packet,
                                      const struct spp *spp, const struct vip *vip,
                                      const bool to_v6, const struct nexthop *nexthop)
{
    const bool from_v6 = packet->is_v6;
    struct udphdr *udp = packet->udp;
    struct address source = source_of(packet), destination = destination_of(packet);
    u64 inner_sum = sum_of(&source, from_v6) + sum_of(&destination, from_v6) + udp->source;
    u16 excess = inner_excess(vip, to_v6, inner_sum + udp->dest);
    struct envelope envelope = {
        .source = vip->local_address,
        .destination = read_address(&spp->client),
        .source_port = vip->local_port,
        .destination_port = spp->client_port,
        .udp_checksum = grown_checksum(udp->check, ~excess),
        .udp_length = sizeof(*udp) + packet->payload_length - SPP_SIZE,
        .traffic = traffic_of(packet),
        .ttl = ttl_of(packet) - 1,
        .is_v6 = to_v6,
    };
    u16 outer_tag = nexthop->tags[0], inner_tag = nexthop->tags[1];

    int growth = link_length_with(outer_tag, inner_tag) + header_length(to_v6);
    growth -= SPP_SIZE + packet->link_length + header_length(from_v6);
    if (bpf_xdp_adjust_head(ctx, -growth))
        return false;
    return write_headers(ctx, nexthop, &envelope, outer_tag, inner_tag, 0);
}

/* An inner-leg packet on, from one port of ours, with all that is behind its headers: between a
   peer relay and an endpoint. The checksum changes by addresses and ports alone. False: no head
   room or no such frame; unmodified. */
static __always_inline bool pass_on_spp(struct xdp_md *ctx, const struct packet *packet,
                                        const struct address *to, __be16 to_port, __be16 sport,
                                        const bool to_v6, const struct nexthop *nexthop)
{
    const bool from_v6 = packet->is_v6;
    struct udphdr *udp = packet->udp;
    struct address was_from = source_of(packet), was_to = destination_of(packet);
    struct envelope envelope = {
        .source = inner_address(to_v6),
        .destination = *to,
        .source_port = sport,
        .destination_port = to_port,
        .udp_length = sizeof(*udp) + packet->payload_length,
        .traffic = traffic_of(packet),
        .ttl = ttl_of(packet) - 1,
        .is_v6 = to_v6,
    };
    u64 sum = sum_of(&envelope.source, to_v6) + sum_of(to, to_v6) + sport + to_port;
    sum += negative_sum_of(&was_from, from_v6) + negative_sum_of(&was_to, from_v6);
    sum += (u16)~udp->source;
    sum += (u16)~udp->dest;
    envelope.udp_checksum = grown_checksum(udp->check, fold(sum));
    u16 outer_tag = nexthop->tags[0], inner_tag = nexthop->tags[1];

    int growth = link_length_with(outer_tag, inner_tag) + header_length(to_v6);
    growth -= packet->link_length + header_length(from_v6);
    if (bpf_xdp_adjust_head(ctx, -growth))
        return false;
    return write_headers(ctx, nexthop, &envelope, outer_tag, inner_tag, SPP_SIZE);
}

/* One address and port of a plain packet, and what depends on them: its source or destination. */
static __always_inline void readdress(void *network, bool is_v6, bool is_source,
                                      const struct address *address, __be16 port)
{
    struct iphdr *ip = network;
    struct ipv6hdr *ipv6 = network;
    struct udphdr *udp = network + header_length(is_v6) - sizeof(*udp);
    __be16 *old_port = is_source ? &udp->source : &udp->dest;
    u64 growth = sum_of(address, is_v6) + port + (u16) ~*old_port;
    if (is_v6) {
        void *place = is_source ? &ipv6->saddr : &ipv6->daddr;
        struct address old = read_address(place);
        growth += negative_sum_of(&old, true);
        write_address(place, address);
        ipv6->hop_limit -= 1;
    } else {
        __be32 *place = is_source ? &ip->saddr : &ip->daddr;
        u64 header_sum = (u64)(u16)~ip->check + (u32) ~*place + address->word[3];
        ip->check = ~fold(header_sum + (u16)~bpf_htons(0x0100)); /* of the TTL, one less */
        growth += (u32) ~*place;
        *place = address->word[3];
        ip->ttl -= 1;
    }
    udp->check = grown_checksum(udp->check, fold(growth));
    *old_port = port;
}

/* The same packet under another source or destination. False: no such frame; unmodified. */
static __always_inline bool rewrite_in_place(struct xdp_md *ctx, const struct packet *packet,
                                             bool is_source, const struct address *address,
                                             __be16 port, const struct nexthop *nexthop)
{
    u16 outer_tag = nexthop->tags[0], inner_tag = nexthop->tags[1];
    u32 link_length = link_length_with(outer_tag, inner_tag);
    int growth = (int)link_length - packet->link_length;
    const bool is_v6 = packet->is_v6;
    if (growth && bpf_xdp_adjust_head(ctx, -growth))
        return false;
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    void *network = data + link_length;
    if (data + sizeof(struct ethernet) + MAX_TAGS * sizeof(struct vlan) > end ||
        network + header_length(is_v6) > end)
        return false;
    write_link(data, nexthop, outer_tag, inner_tag, is_v6);
    readdress(network, is_v6, is_source, address, port);
    return true;
}
