/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Bounds-checked view of an Ethernet frame with IPv4 or IPv6 and UDP inside. Pure: nothing is
   looked up or changed.

   A packet is ours to carry if it is plain: no IP options, no extension headers, no fragment. What
   is not plain is seen well enough to know whether it is for us, and left to the kernel. */
#pragma once

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#define MAX_TAGS 2

#define IP_MORE_FRAGMENTS  0x2000
#define IP_DONT_FRAGMENT   0x4000
#define IP_FRAGMENT_OFFSET 0x1fff

/* linux/if_ether.h has it packed, which makes the compiler read and write single bytes. */
struct ethernet {
    u8 destination[ETH_ALEN];
    u8 source[ETH_ALEN];
    __be16 type;
};

/* An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2). Read and written in
   halves: packets need not be aligned where this program runs. */
struct address {
    union {
        __be32 word[4];
        u64 half[2];
    };
};

#define MAPPED_WORD bpf_htonl(0xffff) /* word 2 of a mapped address */

struct vlan {
    __be16 control; /* priority, and the VLAN id in the low 12 bits */
    __be16 type;    /* of what follows */
};

struct packet {
    struct ethernet *ethernet;
    union {
        void *network;
        struct iphdr *ip;
        struct ipv6hdr *ipv6;
    };
    struct udphdr *udp; /* NULL where the frame shows no UDP header: see parse_...() */
    u8 *payload;        /* what follows the UDP header of a plain packet; see payload_at() */
    void *end;          /* of the frame, which may be padded beyond the datagram */
    u32 tags;           /* VLAN ids, outer << 16 | inner; 0 = none */
    u16 ip_length;      /* bytes, IP header included, as that says */
    u16 payload_length; /* bytes, as the UDP header says; set by is_whole() */
    u8 link_length;     /* bytes in front of the IP header */
    bool is_v6;
    bool is_extended; /* IPv6 with an extension header */
};

static __always_inline bool is_vlan(__be16 type)
{
    return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

/* Headers that may stand between IPv6 and UDP: hop-by-hop, routing, fragment, authentication,
   destination options (RFC 8200 section 4). Each begins with the number of the next one. */
static __always_inline bool is_extension(u8 header)
{
    return header == IPPROTO_HOPOPTS || header == IPPROTO_ROUTING || header == IPPROTO_FRAGMENT ||
           header == IPPROTO_AH || header == IPPROTO_DSTOPTS;
}

/* False: no UDP. A later fragment shows no UDP header, nor does a frame that is cut off. */
static __always_inline bool parse_ipv4(struct packet *packet)
{
    struct iphdr *ip = packet->ip;
    if ((void *)(ip + 1) > packet->end || ip->version != 4 || ip->protocol != IPPROTO_UDP)
        return false;
    struct udphdr *udp = (void *)ip + ip->ihl * 4;
    bool shows_udp = !(ip->frag_off & bpf_htons(IP_FRAGMENT_OFFSET)) && ip->ihl >= 5 &&
                     (void *)(udp + 1) <= packet->end;
    packet->udp = shows_udp ? udp : 0;
    packet->payload = (void *)(ip + 1) + sizeof(*udp);
    packet->ip_length = bpf_ntohs(ip->tot_len);
    return true;
}

/* False: no UDP, as far as the first extension header tells. One with extension headers shows no
   UDP header. */
static __always_inline bool parse_ipv6(struct packet *packet)
{
    struct ipv6hdr *ip = packet->ipv6;
    if ((void *)(ip + 1) > packet->end || ip->version != 6)
        return false;
    struct udphdr *udp = (void *)(ip + 1);
    packet->ip_length = sizeof(*ip) + bpf_ntohs(ip->payload_len);
    packet->payload = (void *)(udp + 1);
    if (ip->nexthdr == IPPROTO_UDP) {
        packet->udp = (void *)(udp + 1) <= packet->end ? udp : 0;
        return true;
    }
    if (!is_extension(ip->nexthdr))
        return false;
    packet->is_extended = true;
    u8 *next = (void *)(ip + 1);
    return (void *)(next + 1) > packet->end || *next == IPPROTO_UDP || is_extension(*next);
}

/* False: nothing that could be ours. */
static __always_inline bool parse_packet(void *data, void *end, struct packet *packet)
{
    struct ethernet *ethernet = data;
    if ((void *)(ethernet + 1) > end)
        return false;
    *packet = (struct packet){.ethernet = ethernet, .end = end, .link_length = sizeof(*ethernet)};
    __be16 type = ethernet->type;
    struct vlan *vlan = (void *)(ethernet + 1);
#pragma unroll
    for (int i = 0; i < MAX_TAGS; i++) {
        if (!is_vlan(type))
            break;
        if ((void *)(vlan + 1) > end)
            return false;
        u32 id = bpf_ntohs(vlan->control) & 0xfff; /* 0: a priority alone (IEEE 802.1Q) */
        packet->tags |= packet->tags ? id : id << 16;
        packet->link_length += sizeof(*vlan);
        type = vlan->type;
        vlan += 1;
    }
    packet->network = vlan;
    if (type == bpf_htons(ETH_P_IP))
        return parse_ipv4(packet);
    packet->is_v6 = true;
    return type == bpf_htons(ETH_P_IPV6) && parse_ipv6(packet);
}

static __always_inline bool is_fragment(const struct packet *packet)
{
    return packet->ip->frag_off & bpf_htons(IP_MORE_FRAGMENTS | IP_FRAGMENT_OFFSET);
}

/* False: the frame, the IP and the UDP length contradict each other, so nobody can read it. Where
   the UDP header is not in sight or is that of a fragment, there is only the IP length. */
static __always_inline bool is_whole(struct packet *packet)
{
    u16 header_length = packet->is_v6 ? sizeof(struct ipv6hdr) : packet->ip->ihl * 4;
    /* Not `network + ip_length > end`: some verifiers (6.1, 6.12, 6.18.15) do not know that a
       swapped length is bounded, and refuse to add it to a packet pointer. */
    if (header_length < sizeof(struct iphdr) || packet->ip_length > packet->end - packet->network)
        return false;
    if (packet->is_v6 ? packet->is_extended : is_fragment(packet))
        return packet->ip_length > header_length;
    if (!packet->udp)
        return false;
    u16 udp_length = bpf_ntohs(packet->udp->len);
    if (udp_length < sizeof(struct udphdr) || header_length + udp_length > packet->ip_length)
        return false;
    packet->payload_length = udp_length - sizeof(struct udphdr);
    return true;
}

/* Of a whole packet: it needs more than this program does, and the kernel can do it. */
static __always_inline bool is_odd(const struct packet *packet)
{
    u32 length = sizeof(struct udphdr) + packet->payload_length;
    if (packet->is_v6) {
        struct ipv6hdr *ip = packet->ipv6;
        return packet->is_extended || ip->hop_limit <= 1 ||
               packet->ip_length != sizeof(*ip) + length || !packet->udp || !packet->udp->check;
    }
    /* A longer one has IP options, or bytes behind the datagram. */
    struct iphdr *ip = packet->ip;
    return is_fragment(packet) || ip->ttl <= 1 || packet->ip_length != sizeof(*ip) + length;
}

/* The first `length` bytes of the payload of a packet that is whole and not odd, or NULL. */
static __always_inline void *payload_at(const struct packet *packet, u16 length)
{
    if (packet->payload_length < length || (void *)packet->payload + length > packet->end)
        return 0;
    return packet->payload;
}

static __always_inline struct address mapped(__be32 v4)
{
    return (struct address){.word = {0, 0, MAPPED_WORD, v4}};
}

static __always_inline struct address read_address(const void *from)
{
    const u64 *halves = from;
    return (struct address){.half = {halves[0], halves[1]}};
}

static __always_inline void write_address(void *to, const struct address *address)
{
    u64 *halves = to;
    halves[0] = address->half[0];
    halves[1] = address->half[1];
}

static __always_inline struct address source_of(const struct packet *packet)
{
    return packet->is_v6 ? read_address(&packet->ipv6->saddr) : mapped(packet->ip->saddr);
}

static __always_inline struct address destination_of(const struct packet *packet)
{
    return packet->is_v6 ? read_address(&packet->ipv6->daddr) : mapped(packet->ip->daddr);
}

static __always_inline bool is_mapped(const struct address *address)
{
    return !address->half[0] && address->word[2] == MAPPED_WORD;
}

static __always_inline bool is_same(const struct address *a, const struct address *b)
{
    return a->half[1] == b->half[1] && a->half[0] == b->half[0];
}

/* First byte of a payload, RFC 7983 section 7. */
static __always_inline bool is_dtls(u8 first)
{
    return first >= 20 && first < 64;
}

static __always_inline bool is_rtp_or_rtcp(u8 first)
{
    return first >= 128 && first < 192;
}

#define NOT_STUN_FROM 20 /* every class but STUN and ZRTP begins with this or more */

struct rtp {
    u8 first;
    u8 type; /* marker bit and payload type, or the RTCP packet type */
    __be16 sequence;
    __be32 timestamp;
    __be32 ssrc;
};

/* Source of an RTP packet; 0 for RTCP (RFC 5761 section 4) and everything else. */
static __always_inline __be32 ssrc_of(const struct packet *packet)
{
    struct rtp *rtp = payload_at(packet, sizeof(*rtp));
    if (!rtp || !is_rtp_or_rtcp(rtp->first) || (rtp->type >= 192 && rtp->type < 224))
        return 0;
    return rtp->ssrc;
}
