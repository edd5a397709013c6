/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Is a payload a STUN Binding request (RFC 8489 section 5)? Pure. Attributes are not looked at. */
#pragma once

#include "packet.h"

#define STUN_BINDING_REQUEST 0x0001
#define STUN_MAGIC_COOKIE    0x2112A442

struct stun {
    __be16 type;
    __be16 length; /* of the attributes, a multiple of 4 */
    __be32 cookie;
    u8 transaction[12];
};

static __always_inline bool is_binding_request(const struct packet *packet)
{
    struct stun *stun = payload_at(packet, sizeof(*stun));
    if (!stun || stun->type != bpf_htons(STUN_BINDING_REQUEST))
        return false;
    u16 length = bpf_ntohs(stun->length);
    return stun->cookie == bpf_htonl(STUN_MAGIC_COOKIE) && length % 4 == 0 &&
           sizeof(*stun) + length == packet->payload_length;
}
