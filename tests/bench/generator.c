/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Sends frames of many clients at a steady rate: run as a live-frame test run, whose pages come
   round again as others left them, so every header is written anew each time.

   On the command line (tests/bench/generator.py):
     LEGS(LEG)  LEG(number, head, client_at, port_at, sum_at, ip_sum_at, stamp_at, shrink) ...
                offsets in the frame; ip_sum_at 0: the client is not in the IPv4 header; shrink:
                bytes by which this leg's frames are shorter than the longest
     TOKEN_AT   optional: each frame gets the next route token there */
#include <uapi/linux/bpf.h>

struct frame {
    u64 sum;    /* of the UDP datagram and its pseudo header, without client, port and stamp */
    u64 ip_sum; /* of the IPv4 header, without the client */
    u8 head[104];
};

struct plan {
    u64 count;    /* frames to send in all, whole bursts */
    u64 interval; /* ns between bursts; 0 = as fast as it goes */
    u32 burst;    /* frames */
    u32 flows;    /* clients */
    u32 stride;   /* odd: visits the clients out of order; 0 = one after the other */
    u32 first;    /* frame number to begin with */
    u32 probes;   /* a frame in so many, a power of 2, carries the time; 0 = none */
    u32 base;     /* lowest client address, the low 32 bits in host order */
};

struct progress {
    u64 next; /* time of the next burst */
    u64 sent;
    u64 began;
    u64 ended;
    u32 left; /* frames of this burst */
    u32 leg;
};

struct token {
    u8 text[24];
    u64 sum;
};

BPF_ARRAY(frames, struct frame, 2);
BPF_ARRAY(plans, struct plan, 1);
BPF_ARRAY(progress, struct progress, 1);
BPF_DEVMAP(wires, 2);
#ifdef TOKEN_AT
BPF_ARRAY(tokens, struct token, 131072);
#endif

#define CATCH_UP     40000 /* ns */
#define LONGEST_WAIT 6000  /* looks at the clock, some 30 ns each */

static __always_inline u16 fold(u64 sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* Wait until the burst is due; false: longer than this program may. A late burst goes at once, but
   more than a little delay is not made up for: that would be a faster burst than asked for. */
static __always_inline bool wait(struct progress *at, const struct plan *plan)
{
    u64 now = bpf_ktime_get_ns();
    for (int i = 0; i < LONGEST_WAIT && now < at->next; i++)
        now = bpf_ktime_get_ns();
    if (now < at->next)
        return false;
    at->next = (now > at->next + CATCH_UP ? now : at->next) + plan->interval;
    at->ended = now;
    if (!at->began)
        at->began = now;
    return true;
}

static __always_inline int emit(struct xdp_md *ctx, u32 number, u32 client_at, u32 port_at,
                                u32 sum_at, u32 ip_sum_at, u32 stamp_at, u32 head, u32 shrink,
                                const struct plan *plan, u64 sent)
{
    int index = number;
    const struct frame *frame = frames.lookup(&index);
    if (!frame || (shrink && bpf_xdp_adjust_head(ctx, shrink)))
        return XDP_ABORTED;
    void *data = (void *)(long)ctx->data;
    if (data + stamp_at + 8 > (void *)(long)ctx->data_end)
        return XDP_ABORTED;
#pragma unroll
    for (u32 at = 0; at + 8 <= head; at += 8)
        *(u64 *)(data + at) = *(u64 *)(frame->head + at);
    *(u64 *)(data + head - 8) = *(u64 *)(frame->head + head - 8);

    u32 count = sent + plan->first;
    u32 client = plan->stride ? ((u64)(u32)(count * plan->stride) * plan->flows) >> 32 : count;
    u32 address = bpf_htonl(plan->base + (client >> 2));
    u16 port = bpf_htons(20000 + (client & 3));
    u64 stamp = plan->probes && !(count & (plan->probes - 1)) ? bpf_ktime_get_ns() : 0;
    u64 sum = frame->sum + address + port + (stamp & 0xffffffff) + (stamp >> 32);
    *(u32 *)(data + client_at) = address;
    *(u16 *)(data + port_at) = port;
    *(u64 *)(data + stamp_at) = stamp;
    if (ip_sum_at)
        *(u16 *)(data + ip_sum_at) = ~fold(frame->ip_sum + address);
#ifdef TOKEN_AT
    int which = count & 131071;
    struct token *token = tokens.lookup(&which);
    if (!token || data + TOKEN_AT + 24 > (void *)(long)ctx->data_end)
        return XDP_ABORTED;
    for (u32 at = 0; at < 24; at += 8)
        *(u64 *)(data + TOKEN_AT + at) = *(u64 *)(token->text + at);
    sum += token->sum;
#endif
    u16 check = ~fold(sum);
    *(u16 *)(data + sum_at) = check ? check : 0xffff;
    return wires.redirect_map(number, 0);
}

int generate(struct xdp_md *ctx)
{
    int only = 0;
    struct plan *plan = plans.lookup(&only);
    struct progress *at = progress.lookup(&only);
    if (!plan || !at)
        return XDP_ABORTED;
    if (!at->left) {
        if (at->sent >= plan->count || !wait(at, plan))
            return XDP_DROP;
        at->left = plan->burst;
        at->leg = !at->leg;
    }
    at->left -= 1;
    u64 sent = at->sent++;
#define LEG(number, head, client_at, port_at, sum_at, ip_sum_at, stamp_at, shrink)              \
    if (ONLY_LEG == number || (ONLY_LEG < 0 && at->leg == number))                              \
        return emit(ctx, number, client_at, port_at, sum_at, ip_sum_at, stamp_at, head, shrink, \
                    plan, sent);
    LEGS(LEG)
    return XDP_ABORTED;
}
