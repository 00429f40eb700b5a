/* Masks, of which a group works on a block at a time, each work-item on EACH neighbours.
 *
 * VARIANT 0   out[block] = how many of its elements are true
 *         1   out[d * room + k] = coordinate d of the k-th true element, `counts` of them being in front of a block */
#define EACH 16
static inline int true_at(GLOBAL const uchar *mask, i64 from, i64 to)
{
    int count = 0;
    if (from + EACH <= to) {
        UNROLL
        for (int k = 0; k < EACH; k++) count += mask[from + k] != 0;
        return count;
    }
    for (i64 i = from; i < to; i++) count += mask[i] != 0;
    return count;
}

#if VARIANT == 0
KERNEL NAME(GLOBAL i64 *out, GLOBAL const uchar *mask, const drupe_mask_params p)
{
    LOCAL int sums[GROUP];
    const int id = get_local_id(0), size = get_local_size(0);
    for (i64 b = get_group_id(0); b * p.block < p.n; b += get_num_groups(0)) {
        const i64 to = min(p.n, (b + 1) * p.block);
        int count = 0;
        for (i64 i = b * p.block + id * EACH; i < to; i += size * EACH) count += true_at(mask, i, to);
        sums[id] = count;
        for (int fold = size / 2; fold > 0; fold /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (id < fold) sums[id] += sums[id + fold];
        }
        if (id == 0) out[b] = sums[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
#else
KERNEL NAME(GLOBAL i64 *out, GLOBAL const uchar *mask, GLOBAL const i64 *counts, const drupe_mask_params p)
{
    LOCAL int sums[GROUP];
    const int id = get_local_id(0), size = get_local_size(0);
    for (i64 b = get_group_id(0); b * p.block < p.n; b += get_num_groups(0)) {
        const i64 to = min(p.n, (b + 1) * p.block);
        i64 begin = counts[b];
        for (i64 base = b * p.block; base < to; base += size * EACH) {
            const i64 from = base + id * EACH;
            const int count = true_at(mask, from, to);
            sums[id] = count;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int reach = 1; reach < size; reach *= 2) {
                const int other = id >= reach ? sums[id - reach] : 0;
                barrier(CLK_LOCAL_MEM_FENCE);
                sums[id] += other;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            i64 k = begin + sums[id] - count;
            begin += sums[size - 1];
            for (i64 i = from; count && i < min(to, from + EACH); i++) {
                if (!mask[i] || k >= p.room) continue;
                i64 rest = i;
                for (int d = p.ndim - 1; d > 0; d--) {
                    const i64 next = rest / p.shape[d];
                    out[d * p.room + k] = rest - next * p.shape[d];
                    rest = next;
                }
                out[k++] = rest;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
#endif
