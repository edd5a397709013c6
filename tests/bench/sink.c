/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Counts the datagrams that arrive at the far end, drops them, and sorts those that carry the time
   of their departure by how long they took.

   On the command line (tests/bench/sink.py), offsets in the frame:
     WATCH_AT, WATCH   the port (host order) that tells the datagrams from other traffic
     PROTOCOL_AT       the byte that says UDP
     STAMP_AT          8 bytes: time of departure, or 0 */
#include <uapi/linux/bpf.h>

struct seen {
    u64 packets;
    u64 bytes;
    u64 strangers;
};

BPF_PERCPU_ARRAY(seen, struct seen, 1);
BPF_PERCPU_ARRAY(delays, u64, 1312); /* 41 octaves of 32 steps: tests/bench/histogram.py */

static __always_inline u32 step_of(u64 ns)
{
    u32 octave = 0;
    u64 rest = ns >> 5;
    if (rest >> 32) {
        octave += 32;
        rest >>= 32;
    }
    if (rest >> 16) {
        octave += 16;
        rest >>= 16;
    }
    if (rest >> 8) {
        octave += 8;
        rest >>= 8;
    }
    if (rest >> 4) {
        octave += 4;
        rest >>= 4;
    }
    if (rest >> 2) {
        octave += 2;
        rest >>= 2;
    }
    if (rest >> 1) {
        octave += 1;
        rest >>= 1;
    }
    if (!rest)
        return ns;
    return ((octave + 1) << 5) + ((ns >> octave) & 31);
}

int sink(struct xdp_md *ctx)
{
    void *data = (void *)(long)ctx->data;
    void *end = (void *)(long)ctx->data_end;
    int only = 0;
    struct seen *seen_here = seen.lookup(&only);
    if (!seen_here)
        return XDP_ABORTED;
    if (data + STAMP_AT + 8 > end || *(u8 *)(data + PROTOCOL_AT) != 17 ||
        *(u16 *)(data + WATCH_AT) != bpf_htons(WATCH)) {
        seen_here->strangers += 1;
        return XDP_DROP;
    }
    seen_here->packets += 1;
    seen_here->bytes += end - data;
    u64 stamp = *(u64 *)(data + STAMP_AT);
    if (stamp) {
        int step = step_of(bpf_ktime_get_ns() - stamp);
        u64 *delay = delays.lookup(&step);
        if (delay)
            *delay += 1;
    }
    return XDP_DROP;
}
