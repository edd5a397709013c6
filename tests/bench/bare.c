/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The limit: other MACs, redirect, nothing else. One copy per direction.

   TO_MAC, FROM_MAC: initializers of six bytes. */
#include <uapi/linux/bpf.h>

BPF_DEVMAP(wires, 1);

int bare(struct xdp_md *ctx)
{
    u8 *ethernet = (void *)(long)ctx->data;
    if (ethernet + 14 > (u8 *)(long)ctx->data_end)
        return XDP_DROP;
    __builtin_memcpy(ethernet, (u8[])TO_MAC, 6);
    __builtin_memcpy(ethernet + 6, (u8[])FROM_MAC, 6);
    return wires.redirect_map(0, 0);
}
