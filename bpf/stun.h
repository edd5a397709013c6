/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the program reads of STUN (RFC 8489 sections 5 and 14): Binding messages, and where the
   USERNAME of a request begins with a route token. Pure. relayctl/wire/stun.py walks attributes
   within the same bounds. */
#pragma once

#include "packet.h"
#include "token.h"

#define STUN_BINDING_REQUEST 0x0001
#define STUN_BINDING_SUCCESS 0x0101
#define STUN_MAGIC_COOKIE    0x2112A442

#define STUN_USERNAME             0x0006
#define STUN_MESSAGE_INTEGRITY    0x0008 /* what follows is not covered by it: not looked at */
#define STUN_MESSAGE_INTEGRITY256 0x001C
#define STUN_FINGERPRINT          0x8028

#define MAX_BEFORE_USERNAME 8    /* attributes */
#define MAX_USERNAME_OFFSET 1024 /* bytes from the start of the message */

struct stun {
    __be16 type;
    __be16 length; /* of the attributes, a multiple of 4 */
    __be32 cookie;
    u8 transaction[12];
};

struct stun_attribute {
    __be16 type;
    __be16 length; /* of the value, without the padding to a multiple of 4 */
};

static __always_inline bool is_stun(const struct packet *packet, u16 type)
{
    struct stun *stun = payload_at(packet, sizeof(*stun));
    if (!stun || stun->type != bpf_htons(type))
        return false;
    u16 length = bpf_ntohs(stun->length);
    return stun->cookie == bpf_htonl(STUN_MAGIC_COOKIE) && length % 4 == 0 &&
           sizeof(*stun) + length == packet->payload_length;
}

/* The first TOKEN_LENGTH characters of a Binding request's USERNAME, if a ':' follows them: the
   characters are not looked at. NULL: none within the bounds. */
static __always_inline const u8 *token_of(const struct packet *packet)
{
    u32 at = sizeof(struct stun);
#pragma unroll
    for (int i = 0; i <= MAX_BEFORE_USERNAME; i++) {
        if (at >= packet->payload_length || at >= MAX_USERNAME_OFFSET)
            return 0;
        struct stun_attribute *attribute = (void *)packet->payload + at;
        if ((void *)(attribute + 1) > packet->end)
            return 0;
        u16 type = bpf_ntohs(attribute->type), length = bpf_ntohs(attribute->length);
        if (at + sizeof(*attribute) + length > packet->payload_length)
            return 0;
        if (type == STUN_USERNAME) {
            const u8 *text = (void *)(attribute + 1);
            if (length <= TOKEN_LENGTH || (void *)(text + TOKEN_LENGTH + 1) > packet->end)
                return 0;
            return text[TOKEN_LENGTH] == ':' ? text : 0;
        }
        if (type == STUN_MESSAGE_INTEGRITY || type == STUN_MESSAGE_INTEGRITY256 ||
            type == STUN_FINGERPRINT)
            return 0;
        at += sizeof(*attribute) + ((length + 3) & ~3);
    }
    return 0;
}
