/* Stands behind relay.c in one text, so that it can call judge(): BCC rewrites map calls only in
   the main text. A test run repeats on the packet as it was left, so each kind puts the client's
   packet back; what that costs is measured on its own. `parts` says what one run does
   (tests/bench/hit_cost.py). */
#define FLOOR  0  /* nothing */
#define PICK   1  /* write the headers of the next client's packet */
#define LOOKUP 2  /* find the client's flow and count, as the relay does */
#define UNDO   4  /* push and take away what an SPP header is long */
#define TWICE  8  /* push in two steps */
#define JUDGE  16 /* the relay's own judgement, which pushes; then take away */

struct place {
    u8 head[48]; /* Ethernet, IPv4 and UDP headers of client 0's packet, and 6 bytes of payload */
    u32 flows;   /* clients to take in turn, out of order */
    u32 next;
    u32 base;      /* first client address, host order */
    u32 misjudged; /* runs that did not forward */
    u32 parts;     /* bits of above */
    u32 zero;
};

BPF_ARRAY(places, struct place, 1);

static __always_inline bool put_back(struct xdp_md *ctx, struct place *place)
{
    void *data = (void *)(long)ctx->data;
    if (data + 48 > (void *)(long)ctx->data_end)
        return false;
#pragma unroll
    for (u32 at = 0; at < 48; at += 8)
        *(u64 *)(data + at) = *(u64 *)(place->head + at);
    u32 client = ((u64)(u32)(place->next++ * 0x9E3779B1) * place->flows) >> 32;
    *(u32 *)(data + 26) = bpf_htonl(place->base + (client >> 2));
    *(u16 *)(data + 34) = bpf_htons(20000 + (client & 3));
    return true;
}

int hit_cost(struct xdp_md *ctx)
{
    int only = 0;
    struct place *place = places.lookup(&only);
    if (!place)
        return XDP_ABORTED;
    u32 parts = place->parts;
    if (parts & PICK) {
        if (!put_back(ctx, place))
            return XDP_ABORTED;
    }
    if (parts & LOOKUP) {
        void *data = (void *)(long)ctx->data;
        if (data + 48 > (void *)(long)ctx->data_end)
            return XDP_ABORTED;
        struct flow_key_v4 key = {*(u32 *)(data + 26), *(u16 *)(data + 34), 1};
        struct flow *flow = flows_v4.lookup(&key);
        if (!flow) {
            place->misjudged += 1;
            return XDP_DROP;
        }
        flow->packets_up += 1;
        flow->bytes_up += 1;
    }
    if (parts & UNDO) {
        if (bpf_xdp_adjust_head(ctx, parts & TWICE ? -SPP_SIZE / 2 : -SPP_SIZE))
            return XDP_ABORTED;
        if (parts & TWICE && bpf_xdp_adjust_head(ctx, -SPP_SIZE / 2))
            return XDP_ABORTED;
        if (bpf_xdp_adjust_head(ctx, SPP_SIZE))
            return XDP_ABORTED;
    }
    if (parts & JUDGE) {
        enum reason reason = judge(ctx);
        count(reason);
        if (reason != FORWARD)
            place->misjudged += 1;
        else if (bpf_xdp_adjust_head(ctx, SPP_SIZE))
            return XDP_ABORTED;
    }
    return XDP_DROP;
}
