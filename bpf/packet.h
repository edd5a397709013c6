/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Bounds-checked view of an Ethernet, IPv4 and UDP packet. Pure: nothing is looked up or changed.

   Frames with VLAN tags and IPv6 are not seen here yet: they stay the kernel's. */
#pragma once

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#define IP_MORE_FRAGMENTS  0x2000
#define IP_DONT_FRAGMENT   0x4000
#define IP_FRAGMENT_OFFSET 0x1fff

struct packet {
    struct ethhdr *ethernet;
    struct iphdr *ip;
    struct udphdr *udp; /* NULL where the frame shows no UDP header: a later fragment, or cut off */
    u8 *payload;        /* what follows a UDP header without IP options; see payload_at() */
    void *end;          /* of the frame, which may be padded beyond the datagram */
    u16 ip_length;      /* bytes, header included, as the IP header says */
    u16 payload_length; /* bytes, as the UDP header says; set by is_whole() */
};

/* False: not IPv4 with UDP inside. */
static __always_inline bool parse_packet(void *data, void *end, struct packet *packet)
{
    struct ethhdr *ethernet = data;
    struct iphdr *ip = (void *)(ethernet + 1);
    if ((void *)(ip + 1) > end || ethernet->h_proto != bpf_htons(ETH_P_IP))
        return false;
    if (ip->version != 4 || ip->protocol != IPPROTO_UDP)
        return false;
    struct udphdr *udp = (void *)ip + ip->ihl * 4;
    bool shows_udp =
        !(ip->frag_off & bpf_htons(IP_FRAGMENT_OFFSET)) && ip->ihl >= 5 && (void *)(udp + 1) <= end;
    packet->ethernet = ethernet;
    packet->ip = ip;
    packet->udp = shows_udp ? udp : 0;
    packet->payload = (void *)(ip + 1) + sizeof(*udp);
    packet->end = end;
    packet->ip_length = bpf_ntohs(ip->tot_len);
    packet->payload_length = 0;
    return true;
}

static __always_inline bool is_fragment(const struct packet *packet)
{
    return packet->ip->frag_off & bpf_htons(IP_MORE_FRAGMENTS | IP_FRAGMENT_OFFSET);
}

/* False: the frame, the IP and the UDP length contradict each other, so nobody can read it. Only
   the first fragment of a datagram has a UDP length, and it is that of the whole. */
static __always_inline bool is_whole(struct packet *packet)
{
    struct iphdr *ip = packet->ip;
    u16 header_length = ip->ihl * 4;
    if (ip->ihl < 5 || (void *)ip + packet->ip_length > packet->end)
        return false;
    if (is_fragment(packet))
        return packet->ip_length > header_length;
    if (!packet->udp)
        return false;
    u16 udp_length = bpf_ntohs(packet->udp->len);
    if (udp_length < sizeof(struct udphdr) || udp_length > packet->ip_length - header_length)
        return false;
    packet->payload_length = udp_length - sizeof(struct udphdr);
    return true;
}

/* Of a whole packet: it needs more than this program does, and the kernel can do it. */
static __always_inline bool is_odd(const struct packet *packet)
{
    struct iphdr *ip = packet->ip;
    u32 plain_length = sizeof(*ip) + sizeof(struct udphdr) + packet->payload_length;
    /* A longer one has IP options, or bytes behind the datagram. */
    return is_fragment(packet) || ip->ttl <= 1 || packet->ip_length != plain_length;
}

/* The first `length` bytes of the payload of a packet that is whole and not odd, or NULL. */
static __always_inline void *payload_at(const struct packet *packet, u16 length)
{
    if (packet->payload_length < length || (void *)packet->payload + length > packet->end)
        return 0;
    return packet->payload;
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
