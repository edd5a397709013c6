/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the pinned maps hold. User space reads and writes the same bytes (relayctl/flow.py,
   relayctl/datapath/base.py); the tests compare sizes and offsets.

   A stamp is CLOCK_MONOTONIC in nanoseconds >> 30, units of 1.07 s; 0 = never.
   __be16 and __be32 are in network order, everything else in the host's. No structure has holes. */
#pragma once

#include "packet.h"

/* Who sends: the client's address and the VIP that it sends to. */
struct flow_key_v4 {
    __be32 client;
    __be16 client_port;
    u16 vip; /* id of the VIP, as the operator gave it */
};

struct flow_key_v6 {
    struct address client;
    __be16 client_port;
    u16 vip;
    u32 zero;
};

/* Which endpoint owns the packets of one client. User space writes an entry when it installs or
   re-points a flow, and deletes it; between the two only this program changes it, in place. */
struct flow {
    u64 token;        /* first 8 characters of the route token, as in the packet; 0 = unknown */
    __be32 host;      /* the endpoint's address, IPv6: its last word; FLOW_TO_PEER: a slot */
    __be16 port;      /* the endpoint's port */
    u16 cluster;      /* id of the endpoint's cluster */
    u16 nexthop_in;   /* index into `nexthops`, towards the endpoint; 0 is never valid */
    u16 nexthop_out;  /* the same, towards the client */
    __be16 sport;     /* our source port on the inner leg */
    u8 back;          /* peer relay that delivered the last client packet; 0 = none */
    u8 flags;         /* FLOW_... */
    u32 seen_up;      /* stamp of the last client packet */
    u32 seen_down;    /* stamp of the last endpoint packet */
    __be32 ssrc;      /* source of the client's first RTP packet; 0 = none yet */
    u32 contended;    /* stamp of the last authentic token of another endpoint */
    u32 packets_up;   /* from the client, whether forwarded or punted */
    u32 packets_down; /* from the endpoint */
    u32 born;         /* stamp of the install */
    u32 answers;      /* punted while contended: unit << 8 | how many in it */
    u64 bytes_up;     /* UDP payload as the client sees it: without the SPP header */
    u64 bytes_down;
};

#define FLOW_CONFIRMED 0x01 /* the endpoint sent something other than STUN */
#define FLOW_TO_PEER   0x02 /* packets go by a peer relay */

/* Where the packets of a peer relay's slot go: to itself, or to who stands in for it. */
struct peer {
    struct address address;
    u16 nexthop; /* index into `nexthops` */
    u8 valid;    /* 0: nobody lives who could take them, punt */
    u8 zeros[5];
};

#define PEER_BACK  256 /* first slot of the way back to who delivered a client's packet */
#define PEER_SLOTS 512

/* Where a redirected packet goes next. User space keeps it current. */
struct nexthop {
    u8 valid;    /* 0: the neighbour is not resolved, punt */
    u8 port;     /* index into `egress`, 1-63 */
    u16 mtu;     /* bytes, IP header included; larger packets are punted */
    u16 tags[2]; /* VLAN ids, outer first; 0 = none */
    u8 destination_mac[6];
    u8 source_mac[6];
    __be32 gateway[4]; /* the neighbour; only user space reads it */
};

/* What user space tells the program while it runs. */
struct control {
    u32 alive; /* stamp of the packet process's last heartbeat */
};

/* What one CPU has let through a door to user space during one unit of time. */
struct budget {
    u32 unit; /* stamp: the unit that `used` counts in */
    u32 used; /* packets */
};

/* Slots of `budgets`: one for each punting reason, then buckets that many tokens, endpoints or
   clients share. */
#define RETURN_BUCKETS    1024
#define ORPHAN_BUCKETS    16384
#define TOKEN_BUCKETS     65536
#define FIRST_RETURN_SLOT 64
#define FIRST_ORPHAN_SLOT (FIRST_RETURN_SLOT + RETURN_BUCKETS)
#define FIRST_TOKEN_SLOT  (FIRST_ORPHAN_SLOT + ORPHAN_BUCKETS)
#define BUDGET_SLOTS      (FIRST_TOKEN_SLOT + TOKEN_BUCKETS)

_Static_assert(sizeof(struct flow_key_v4) == 8, "relayctl/flow.py: KEY_V4");
_Static_assert(sizeof(struct flow_key_v6) == 24, "relayctl/flow.py: KEY_V6");
_Static_assert(sizeof(struct flow) == 72, "relayctl/flow.py: VALUE");
_Static_assert(sizeof(struct nexthop) == 36, "relayctl/datapath/base.py: NEXTHOP");
_Static_assert(sizeof(struct peer) == 24, "relayctl/datapath/base.py: PEER");
