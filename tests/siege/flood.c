/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Sends hostile frames from ever changing sources: run as a live-frame test run, whose pages come
   round again as others left them, so each frame is written anew from its first byte to its last.

   On the command line (tests/siege/flood.py):
     SIZE    bytes of every frame
     SHAPES  how many shapes there are; they take turns */
#include <uapi/linux/bpf.h>

struct shape {
    u64 ip_sum;    /* of the words of the IPv4 header, without source and checksum */
    u32 port_at;   /* offset of the source port, 0: leave it */
    u32 text_at;   /* 16 characters to make up, 0: none */
    u32 noise_at;  /* 8 bytes to make up, 0: none */
    u32 reserved;
    u8 frame[SIZE + 7 & ~7];
};

struct plan {
    u64 count;    /* frames to send in all, whole bursts */
    u64 interval; /* ns between bursts; 0 = as fast as it goes */
    u32 burst;    /* frames */
    u32 base;     /* lowest source address, host order */
    u32 spread;   /* sources - 1, a power of two less one */
    u32 reserved;
};

struct progress {
    u64 sent;
    u64 due;    /* time of the next burst */
    u64 random; /* state of a generator by Marsaglia; never 0 */
    u32 left;   /* frames of this burst */
    u32 reserved;
};

BPF_ARRAY(shapes, struct shape, SHAPES);
BPF_ARRAY(plans, struct plan, 1);
BPF_ARRAY(progress, struct progress, 1);
BPF_DEVMAP(wires, 1);

#define PATIENCE 6000   /* looks at the clock, some 30 ns each */
#define CATCH_UP 2000000 /* ns */

static __always_inline u64 chance(struct progress *at)
{
    u64 x = at->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return at->random = x;
}

static __always_inline u16 fold(u64 sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* Whether the next burst is due; a wait that is too long for one run goes on in the next. What came
   late is made up for, up to a point: more at once would overrun a cable. */
static __always_inline bool is_due(struct progress *at, const struct plan *plan)
{
    u64 now = bpf_ktime_get_ns();
    for (int i = 0; i < PATIENCE && now < at->due; i++)
        now = bpf_ktime_get_ns();
    if (now < at->due)
        return false;
    at->due = (now > at->due + CATCH_UP ? now - CATCH_UP : at->due) + plan->interval;
    return true;
}

int flood(struct xdp_md *ctx)
{
    int only = 0;
    struct plan *plan = plans.lookup(&only);
    struct progress *at = progress.lookup(&only);
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    if (!plan || !at || data + SIZE > end)
        return XDP_ABORTED;
    if (!at->left) {
        if (at->sent >= plan->count || !is_due(at, plan))
            return XDP_DROP;
        at->left = plan->burst;
    }
    at->left -= 1;
    int index = at->sent++ % SHAPES;
    struct shape *shape = shapes.lookup(&index);
    if (!shape)
        return XDP_ABORTED;
#pragma unroll
    for (u32 i = 0; i + 8 <= SIZE; i += 8)
        *(u64 *)(data + i) = *(u64 *)(shape->frame + i);
    *(u64 *)(data + SIZE - 8) = *(u64 *)(shape->frame + SIZE - 8);

    u64 random = chance(at);
    u32 source = bpf_htonl(plan->base + (random & plan->spread));
    *(u32 *)(data + 26) = source;
    *(u16 *)(data + 24) = ~fold(shape->ip_sum + source);
    u32 port_at = shape->port_at & 0xff, text_at = shape->text_at & 0xff;
    u32 noise_at = shape->noise_at & 0xff;
    if (port_at && data + port_at + 2 <= end) /* 32768-65535 */
        *(u16 *)(data + port_at) = random >> 48 | 0x80;
    if (text_at && data + text_at + 16 <= end) { /* letters a to p */
        *(u64 *)(data + text_at) = (chance(at) & 0x0f0f0f0f0f0f0f0f) + 0x6161616161616161;
        *(u64 *)(data + text_at + 8) = (chance(at) & 0x0f0f0f0f0f0f0f0f) + 0x6161616161616161;
    }
    if (noise_at && data + noise_at + 8 <= end)
        *(u64 *)(data + noise_at) = chance(at);
    return wires.redirect_map(0, 0);
}
