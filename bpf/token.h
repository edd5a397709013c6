/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Read and verify a route token: 24 base64 characters that name an endpoint, sealed by a key that
   only we and the transceivers have. Pure; relayctl/wire/route_token.py says how it is made, and
   tests compare the two.

   18 bytes: H (version, key id) | T (6, tag) | C (11, sealed cluster, host, port, nonce). Words
   below hold bytes in the order of little-endian memory, as SipHash wants them. */
#pragma once

#define TOKEN_LENGTH  24 /* characters */
#define TOKEN_VERSION 1

/* One slot of `keys`. */
struct route_key {
    u64 tag[2];
    u64 seal[2];
    u32 valid;
    u32 zero;
};

_Static_assert(sizeof(struct route_key) == 40, "relayctl/datapath/base.py: ROUTE_KEY");

/* What the 18 bytes say, before they are believed. */
struct token {
    u64 tag;         /* T, 48 bits */
    u64 sealed;      /* C[0:8] */
    u32 sealed_rest; /* C[8:11] */
    u8 head;         /* H */
};

/* What an authentic token says. */
struct route {
    __be32 host;
    __be16 port;
    u16 cluster;
};

#define LANES(byte) (0x0101010101010101ULL * (byte))

/* Bit 7 of every lane whose character is at least `least`; characters are below 0x80. */
static __always_inline u64 at_least(u64 characters, u8 least)
{
    return ((characters | LANES(0x80)) - LANES(least)) & LANES(0x80);
}

/* 1 in every lane whose character is within first..last. */
static __always_inline u64 lanes_within(u64 characters, u8 first, u8 last)
{
    return (at_least(characters, first) & ~at_least(characters, last + 1)) >> 7;
}

/* Eight base64 characters, the first in the lowest byte of `text`, as a 48-bit number whose first
   byte is the highest. False: another character is among them. */
static __always_inline bool decode_base64(u64 text, u64 *number)
{
    u64 upper = lanes_within(text, 'A', 'Z'), lower = lanes_within(text, 'a', 'z');
    u64 digit = lanes_within(text, '0', '9'), plus = lanes_within(text, '+', '+');
    u64 slash = lanes_within(text, '/', '/');
    if (text & LANES(0x80) || (upper | lower | digit | plus | slash) != LANES(1))
        return false;
    /* No lane borrows from another: each is at least what is taken from it. */
    u64 sextets = text - upper * 'A' - lower * ('a' - 26) + digit * (52 - '0') + plus * (62 - '+') +
                  slash * (63 - '/');
    u64 packed = __builtin_bswap64(sextets);
    packed = (packed & 0x3f003f003f003f00) >> 2 | (packed & 0x003f003f003f003f);
    packed = (packed & 0x0fff00000fff0000) >> 4 | (packed & 0x00000fff00000fff);
    *number = (packed >> 32) << 24 | (packed & 0xffffff);
    return true;
}

/* False: no token of our version. `text` has TOKEN_LENGTH readable bytes. */
static __always_inline bool decode_token(const u8 *text, struct token *token)
{
    u64 words[3], first, second, third;
    __builtin_memcpy(words, text, sizeof(words));
    if (!decode_base64(words[0], &first) || !decode_base64(words[1], &second) ||
        !decode_base64(words[2], &third))
        return false;
    token->head = first >> 40;
    token->tag = __builtin_bswap64(first << 24 | second >> 40 << 16);
    token->sealed = __builtin_bswap64(second << 24 | third >> 24);
    token->sealed_rest = __builtin_bswap64(third << 40);
    return token->head >> 5 == TOKEN_VERSION;
}

static __always_inline u32 key_id_of(const struct token *token)
{
    return token->head & 31;
}

static __always_inline u64 rotate(u64 word, u32 bits)
{
    return word << bits | word >> (64 - bits);
}

static __always_inline void sip_round(u64 v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static __always_inline void sip_absorb(u64 v[4], u64 word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

/* SipHash-2-4 of 8 or 16 bytes, whose last one is the message's length. */
static __always_inline u64 siphash(const u64 key[2], const u64 *words, u32 count)
{
    u64 v[4] = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
    sip_absorb(v, words[0]);
    if (count > 1)
        sip_absorb(v, words[1]);
    v[2] ^= 0xff;
    sip_round(v);
    sip_round(v);
    sip_round(v);
    sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* False: forged. Not in constant time: whoever can time single packets here sits in the kernel. */
static __always_inline bool open_token(const struct token *token, const struct route_key *key,
                                       struct route *route)
{
    u64 block = token->tag | 7ULL << 56;
    u64 plain = token->sealed ^ siphash(key->seal, &block, 1);
    block |= 1ULL << 48;
    u64 nonce = (token->sealed_rest ^ siphash(key->seal, &block, 1)) & 0xffffff;
    u64 words[2] = {token->head | plain << 8, plain >> 56 | nonce << 8 | 12ULL << 56};
    if (((siphash(key->tag, words, 2) ^ token->tag) & 0xffffffffffff) != 0)
        return false;
    route->cluster = bpf_ntohs((__be16)plain);
    route->host = plain >> 16;
    route->port = plain >> 48;
    return true;
}
