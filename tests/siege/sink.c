/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Counts one stream of datagrams where it arrives and drops it; everything else passes.

   On the command line (tests/siege/stream.py):
     MARK_AT, MARK   offset in the frame and the 8 bytes there that tell the stream, as a number */
#include <uapi/linux/bpf.h>

struct seen {
    u64 right; /* packets to the MAC address that is wanted */
    u64 stale; /* to another one */
};

BPF_PERCPU_ARRAY(seen, struct seen, 1);
BPF_ARRAY(wanted, u64, 1); /* 6 bytes of it; 0: any */

int sink(struct xdp_md *ctx)
{
    int only = 0;
    void *data = (void *)(long)ctx->data;
    if (data + MARK_AT + 8 > (void *)(long)ctx->data_end || *(u64 *)(data + MARK_AT) != MARK)
        return XDP_PASS;
    struct seen *here = seen.lookup(&only);
    u64 *mac = wanted.lookup(&only);
    if (!here || !mac)
        return XDP_ABORTED;
    if (!*mac || (*(u64 *)data & 0xffffffffffff) == *mac)
        here->right += 1;
    else
        here->stale += 1;
    return XDP_DROP;
}
