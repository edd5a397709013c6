/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The node that the program is compiled for. Pure: comparisons against constants, unrolled; what
   the node does not have costs nothing.

   relayctl/datapath/spec.py puts the node on the compiler's command line, numbers in host order, an
   IPv6 address as four words:
     VIPS_V4(VIP)            VIP(id, public address, public port, local address, local port) ...
     VIPS_V6(VIP)            the same with four words for each address
     INTERFACES(INTERFACE)   INTERFACE(ifindex, VLAN ids, legs that it may bring) ...
     CLUSTERS_V6(CLUSTER)    CLUSTER(id, prefix in three words) ...: all others are IPv4
     ALLOWED_V4(NETWORK)     NETWORK(address, mask, first port, last port) ...: endpoints
     ALLOWED_V6(NETWORK)     the same with four words for each address and mask
     OWN_V4(ADDRESS), OWN_V6(ADDRESS): further addresses of this host
     INNER_V4(ADDRESS), INNER_V6(ADDRESS): where endpoints send to; one of each family or none
     INNER_PORT_BASE, INNER_PORTS
     ALLOW_INNER_CLIENTS     1: clients may be inside the allowed networks (labs)
     TRANSPARENT             1: endpoints see their clients' addresses, without SPP
     HAS_PEERS               1: there are peer relays
     PEERS_V4(PEER)          PEER(id, inner address) ...
     PEERS_V6(PEER)          the same with four words
     FOREIGN_V4(VIP)         VIP(id, public address, public port, does `peer` serve it?) ...
     FOREIGN_V6(VIP)         the same with four words */
#pragma once

#include "packet.h"

/* Legs, as bits: an interface brings one or both. */
#define OUTER_LEG 0x01 /* client - relay */
#define INNER_LEG 0x02 /* relay - transceiver */

#define WORDS(a, b, c, d)                                                  \
    {                                                                      \
        .word = { bpf_htonl(a), bpf_htonl(b), bpf_htonl(c), bpf_htonl(d) } \
    }
#define WORDS_V4(v4) WORDS(0, 0, 0xffff, v4)

struct vip {
    struct address public_address; /* what clients and transceivers know */
    struct address local_address;  /* what stands on the wire here; differs behind a 1:1 NAT */
    __be16 public_port;
    __be16 local_port;
    u16 id;
};

/* Is this address the constant a, b, c, d (host order)? */
static __always_inline bool is_words(const struct address *address, u32 a, u32 b, u32 c, u32 d)
{
    return address->word[3] == bpf_htonl(d) && address->word[2] == bpf_htonl(c) &&
           address->word[1] == bpf_htonl(b) && address->word[0] == bpf_htonl(a);
}

static __always_inline bool is_v4(const struct address *address, bool is_v6, u32 v4)
{
    return !is_v6 && address->word[3] == bpf_htonl(v4);
}

#define V4_VIP(number, public_ip, public_udp, local_ip, local_udp)                            \
    (struct vip)                                                                              \
    {                                                                                         \
        WORDS_V4(public_ip), WORDS_V4(local_ip), bpf_htons(public_udp), bpf_htons(local_udp), \
            number                                                                            \
    }
#define V6_VIP(number, p0, p1, p2, p3, public_udp, l0, l1, l2, l3, local_udp)                      \
    (struct vip)                                                                                   \
    {                                                                                              \
        WORDS(p0, p1, p2, p3), WORDS(l0, l1, l2, l3), bpf_htons(public_udp), bpf_htons(local_udp), \
            number                                                                                 \
    }

static __always_inline bool vip_by_local(const struct address *address, bool is_v6, __be16 port,
                                         struct vip *vip)
{
#define VIP(number, public_ip, public_udp, local_ip, local_udp)            \
    if (is_v4(address, is_v6, local_ip) && port == bpf_htons(local_udp)) { \
        *vip = V4_VIP(number, public_ip, public_udp, local_ip, local_udp); \
        return true;                                                       \
    }
    VIPS_V4(VIP)
#undef VIP
#define VIP(number, p0, p1, p2, p3, public_udp, l0, l1, l2, l3, local_udp)            \
    if (is_v6 && port == bpf_htons(local_udp) && is_words(address, l0, l1, l2, l3)) { \
        *vip = V6_VIP(number, p0, p1, p2, p3, public_udp, l0, l1, l2, l3, local_udp); \
        return true;                                                                  \
    }
    VIPS_V6(VIP)
#undef VIP
    return false;
}

static __always_inline bool vip_by_public(const struct address *address, bool is_v6, __be16 port,
                                          struct vip *vip)
{
#define VIP(number, public_ip, public_udp, local_ip, local_udp)              \
    if (is_v4(address, is_v6, public_ip) && port == bpf_htons(public_udp)) { \
        *vip = V4_VIP(number, public_ip, public_udp, local_ip, local_udp);   \
        return true;                                                         \
    }
    VIPS_V4(VIP)
#undef VIP
#define VIP(number, p0, p1, p2, p3, public_udp, l0, l1, l2, l3, local_udp)             \
    if (is_v6 && port == bpf_htons(public_udp) && is_words(address, p0, p1, p2, p3)) { \
        *vip = V6_VIP(number, p0, p1, p2, p3, public_udp, l0, l1, l2, l3, local_udp);  \
        return true;                                                                   \
    }
    VIPS_V6(VIP)
#undef VIP
    return false;
}

/* In transparent mode there is one VIP of each family at most. */
static __always_inline bool vip_of_family(bool is_v6, struct vip *vip)
{
#define VIP(number, public_ip, public_udp, local_ip, local_udp)            \
    if (!is_v6) {                                                          \
        *vip = V4_VIP(number, public_ip, public_udp, local_ip, local_udp); \
        return true;                                                       \
    }
    VIPS_V4(VIP)
#undef VIP
#define VIP(number, p0, p1, p2, p3, public_udp, l0, l1, l2, l3, local_udp)            \
    if (is_v6) {                                                                      \
        *vip = V6_VIP(number, p0, p1, p2, p3, public_udp, l0, l1, l2, l3, local_udp); \
        return true;                                                                  \
    }
    VIPS_V6(VIP)
#undef VIP
    return false;
}

static __always_inline bool is_local_vip_address(const struct address *address, bool is_v6)
{
#define VIP(number, public_ip, public_udp, local_ip, local_udp) is_v4(address, is_v6, local_ip) ||
    if (VIPS_V4(VIP) false)
        return true;
#undef VIP
#define VIP(number, p0, p1, p2, p3, public_udp, l0, l1, l2, l3, local_udp) \
    (is_v6 && is_words(address, l0, l1, l2, l3)) ||
    return VIPS_V6(VIP) false;
#undef VIP
}

static __always_inline bool is_inner_address(const struct address *address, bool is_v6)
{
#define ADDRESS(inner) is_v4(address, is_v6, inner) ||
    if (INNER_V4(ADDRESS) false)
        return true;
#undef ADDRESS
#define ADDRESS(a, b, c, d) (is_v6 && is_words(address, a, b, c, d)) ||
    return INNER_V6(ADDRESS) false;
#undef ADDRESS
}

static __always_inline bool is_inner_port(__be16 port)
{
    return (u16)(bpf_ntohs(port) - INNER_PORT_BASE) < INNER_PORTS;
}

/* Our inner address of a family; zeros if there is none, which no flow can need. */
static __always_inline struct address inner_address(bool is_v6)
{
    struct address address = {};
#define ADDRESS(inner) \
    if (!is_v6)        \
        address = (struct address)WORDS_V4(inner);
    INNER_V4(ADDRESS)
#undef ADDRESS
#define ADDRESS(a, b, c, d) \
    if (is_v6)              \
        address = (struct address)WORDS(a, b, c, d);
    INNER_V6(ADDRESS)
#undef ADDRESS
    return address;
}

/* The first three words of the addresses in an IPv6 cluster. False: it is an IPv4 one. */
static __always_inline bool v6_prefix(u16 cluster, struct address *address)
{
#define CLUSTER(number, a, b, c)                      \
    case number:                                      \
        *address = (struct address)WORDS(a, b, c, 0); \
        return true;
    switch (cluster) {
        CLUSTERS_V6(CLUSTER)
    }
#undef CLUSTER
    return false;
}

static __always_inline bool is_within(const struct address *address, const struct address *network,
                                      const struct address *mask)
{
    return (address->word[0] & mask->word[0]) == network->word[0] &&
           (address->word[1] & mask->word[1]) == network->word[1] &&
           (address->word[2] & mask->word[2]) == network->word[2] &&
           (address->word[3] & mask->word[3]) == network->word[3];
}

/* May an endpoint have this address and port (host order)? Port 0 asks for the address alone. */
static __always_inline bool is_allowed(const struct address *address, bool is_v6, u16 port)
{
#define NETWORK(network, mask, first, last)                                     \
    if (!is_v6 && (address->word[3] & bpf_htonl(mask)) == bpf_htonl(network) && \
        (!port || (port >= first && port <= last)))                             \
        return true;
    ALLOWED_V4(NETWORK)
#undef NETWORK
#define NETWORK(n0, n1, n2, n3, m0, m1, m2, m3, first, last)       \
    if (is_v6 && (!port || (port >= first && port <= last)) &&     \
        is_within(address, &(struct address)WORDS(n0, n1, n2, n3), \
                  &(struct address)WORDS(m0, m1, m2, m3)))         \
        return true;
    ALLOWED_V6(NETWORK)
#undef NETWORK
    return false;
}

/* Which legs an interface may bring with these VLAN ids; none if it is not in the configuration. */
static __always_inline u32 legs_of_interface(u32 ifindex, u32 tags)
{
#define INTERFACE(number, ids, legs)      \
    if (ifindex == number && tags == ids) \
        return legs;
    INTERFACES(INTERFACE)
#undef INTERFACE
    return 0;
}

/* Id of the peer relay with this address; 0: nobody's. */
static __always_inline u8 peer_at(const struct address *address, bool is_v6)
{
#define PEER(number, inner)           \
    if (is_v4(address, is_v6, inner)) \
        return number;
    PEERS_V4(PEER)
#undef PEER
#define PEER(number, a, b, c, d)                \
    if (is_v6 && is_words(address, a, b, c, d)) \
        return number;
    PEERS_V6(PEER)
#undef PEER
    return 0;
}

/* Id of a VIP that peer relays serve and we do not, if `peer` does; `peer` 0 is an endpoint, which
   may answer for any of them. 0: none. */
static __always_inline u16 foreign_vip(const struct address *address, bool is_v6, __be16 port,
                                       u8 peer)
{
#define VIP(number, public_ip, public_udp, is_served)                                   \
    if (is_v4(address, is_v6, public_ip) && port == bpf_htons(public_udp) && is_served) \
        return number;
    FOREIGN_V4(VIP)
#undef VIP
#define VIP(number, a, b, c, d, public_udp, is_served)                                        \
    if (is_v6 && port == bpf_htons(public_udp) && is_words(address, a, b, c, d) && is_served) \
        return number;
    FOREIGN_V6(VIP)
#undef VIP
    return 0;
}

/* This host's addresses and those that stand for it. */
static __always_inline bool is_own(const struct address *address, bool is_v6)
{
#define VIP(number, public_ip, public_udp, local_ip, local_udp) is_v4(address, is_v6, public_ip) ||
#define ADDRESS(own)                                            is_v4(address, is_v6, own) ||
    if (VIPS_V4(VIP) OWN_V4(ADDRESS) false)
        return true;
#undef ADDRESS
#undef VIP
#define VIP(number, p0, p1, p2, p3, public_udp, l0, l1, l2, l3, local_udp) \
    (is_v6 && is_words(address, p0, p1, p2, p3)) ||
#define ADDRESS(a, b, c, d) (is_v6 && is_words(address, a, b, c, d)) ||
    if (VIPS_V6(VIP) OWN_V6(ADDRESS) false)
        return true;
#undef ADDRESS
#undef VIP
    return is_local_vip_address(address, is_v6) || is_inner_address(address, is_v6);
}

/* 0/8, loopback, link-local, multicast and reserved (RFC 6890). */
static __always_inline bool is_no_client_v4(__be32 address)
{
    u32 host = bpf_ntohl(address);
    u32 first = host >> 24;
    return first == 0 || first == 127 || first >= 224 || host >> 16 == 0xa9fe;
}

/* Unspecified, loopback, IPv4-mapped, link-local, multicast (RFC 4291 section 2.4). */
static __always_inline bool is_no_client_v6(const struct address *address)
{
    u32 first = bpf_ntohl(address->word[0]);
    bool is_low = !(address->word[0] | address->word[1] | address->word[2]);
    return (is_low && bpf_ntohl(address->word[3]) <= 1) || is_mapped(address) ||
           first >> 22 == 0xfe80 >> 6 || first >> 24 == 0xff;
}

/* No client has such an address: none at all, our own, a transceiver's; nor port 0. Answering one
   would send packets where no client is. */
static __always_inline bool is_bad_source(const struct address *address, bool is_v6, __be16 port)
{
    return !port || (is_v6 ? is_no_client_v6(address) : is_no_client_v4(address->word[3])) ||
           is_own(address, is_v6) || (!ALLOW_INNER_CLIENTS && is_allowed(address, is_v6, 0));
}
