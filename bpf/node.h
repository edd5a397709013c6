/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The node that the program is compiled for. Pure: comparisons against constants, unrolled.

   relayctl/datapath/spec.py puts the node on the compiler's command line, addresses and ports in
   host order:
     VIPS(VIP)               VIP(id, public address, public port, local address, local port) ...
     INTERFACES(INTERFACE)   INTERFACE(ifindex, legs that it may bring) ...
     ALLOWED(NETWORK)        NETWORK(address, mask) ...: where transceivers are
     OWN(ADDRESS)            ADDRESS(address) ...: further addresses of this host
     INNER_ADDRESS, INNER_PORT_BASE, INNER_PORTS: where endpoints send to
     ALLOW_INNER_CLIENTS     1: clients may be inside the allowed networks (labs) */
#pragma once

/* Legs, as bits: an interface brings one or both. */
#define OUTER_LEG 0x01 /* client - relay */
#define INNER_LEG 0x02 /* relay - transceiver */

struct vip {
    u16 id;
    __be32 public_address; /* what clients and transceivers know */
    __be16 public_port;
    __be32 local_address; /* what stands on the wire here; differs behind a 1:1 NAT */
    __be16 local_port;
};

static __always_inline bool vip_by_local(__be32 address, __be16 port, struct vip *vip)
{
#define VIP(number, public_ip, public_udp, local_ip, local_udp)                                  \
    if (address == bpf_htonl(local_ip) && port == bpf_htons(local_udp)) {                        \
        *vip = (struct vip){number, bpf_htonl(public_ip), bpf_htons(public_udp), address, port}; \
        return true;                                                                             \
    }
    VIPS(VIP)
#undef VIP
    return false;
}

static __always_inline bool vip_by_public(__be32 address, __be16 port, struct vip *vip)
{
#define VIP(number, public_ip, public_udp, local_ip, local_udp)                                \
    if (address == bpf_htonl(public_ip) && port == bpf_htons(public_udp)) {                    \
        *vip = (struct vip){number, address, port, bpf_htonl(local_ip), bpf_htons(local_udp)}; \
        return true;                                                                           \
    }
    VIPS(VIP)
#undef VIP
    return false;
}

static __always_inline bool is_local_vip_address(__be32 address)
{
#define VIP(number, public_ip, public_udp, local_ip, local_udp) address == bpf_htonl(local_ip) ||
    return VIPS(VIP) false;
#undef VIP
}

/* Sum of the public VIP minus that of the local one, in ones' complement; a form of 0 if equal. */
static __always_inline u64 vip_excess(const struct vip *vip)
{
    u64 plus = (u64)vip->public_address + vip->public_port;
    return plus + (u32)~vip->local_address + (u16)~vip->local_port;
}

static __always_inline bool is_inner_port(__be16 port)
{
    return (u16)(bpf_ntohs(port) - INNER_PORT_BASE) < INNER_PORTS;
}

static __always_inline bool is_allowed(__be32 address)
{
#define NETWORK(network, mask) (address & bpf_htonl(mask)) == bpf_htonl(network) ||
    return ALLOWED(NETWORK) false;
#undef NETWORK
}

/* Which legs an interface may bring; none if it is not in the configuration. */
static __always_inline u32 legs_of_interface(u32 ifindex)
{
#define INTERFACE(number, legs) \
    if (ifindex == number)      \
        return legs;
    INTERFACES(INTERFACE)
#undef INTERFACE
    return 0;
}

/* This host's addresses and those that stand for it. */
static __always_inline bool is_own(__be32 address)
{
#define VIP(number, public_ip, public_udp, local_ip, local_udp) \
    address == bpf_htonl(public_ip) || address == bpf_htonl(local_ip) ||
#define ADDRESS(own) address == bpf_htonl(own) ||
    return VIPS(VIP) OWN(ADDRESS) address == bpf_htonl(INNER_ADDRESS);
#undef ADDRESS
#undef VIP
}

/* No client has such an address: 0/8, loopback, link-local, multicast and reserved (RFC 6890), our
   own, a transceiver's; and port 0. Answering one would send packets where no client is. */
static __always_inline bool is_bad_source(__be32 address, __be16 port)
{
    u32 host = bpf_ntohl(address);
    u32 first = host >> 24;
    return !port || first == 0 || first == 127 || first >= 224 || host >> 16 == 0xa9fe ||
           is_own(address) || (!ALLOW_INNER_CLIENTS && is_allowed(address));
}
