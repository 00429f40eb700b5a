/* Numbers between 0 and 1 from the words of a Philox4x64-10 generator, whose state is that of math/philox.h, as 13
 * words: key, counter, block, taken, has32, word32.
 *
 * VARIANT 0   out[i], each work-item from the words of a block; float32 takes two numbers from a word
 *         1   the state behind n such numbers; `before` takes what it was, so that another thread's numbers may be asked
 *             for before these are made */
typedef struct generator {
    u64 counter[4], block[4];
} generator;
/* The block that lies `n` behind the state's. */
static inline void make_block(GLOBAL const u64 *state, u64 n, generator *g)
{
    u64 k0 = state[0], k1 = state[1];
    for (int i = 0; i < 4; i++) {
        g->counter[i] = state[2 + i] + n;
        n = g->counter[i] < n;
    }
    u64 c0 = g->counter[0], c1 = g->counter[1], c2 = g->counter[2], c3 = g->counter[3];
    for (int round = 0; round < 10; round++) {
        const u64 high = mul_hi(0xD2E7470EE14C6C93UL, c0), low = 0xD2E7470EE14C6C93UL * c0;
        const u64 other_high = mul_hi(0xCA5A826395121157UL, c2), other_low = 0xCA5A826395121157UL * c2;
        c0 = other_high ^ c1 ^ k0;
        c1 = other_low;
        c2 = high ^ c3 ^ k1;
        c3 = low;
        k0 += 0x9E3779B97F4A7C15UL;
        k1 += 0xBB67AE8584CAA73BUL;
    }
    g->block[0] = c0;
    g->block[1] = c1;
    g->block[2] = c2;
    g->block[3] = c3;
}

#define IS_WIDE (sizeof(TO) == 8)
#define NARROW(half) ((TO)((half) >> 8) * (TO)(1.0f / 16777216.0f))
#define TAKEN state[10]
#define HAS32 state[11]
#define WORD32 state[12]

#if VARIANT == 0
KERNEL NAME(GLOBAL TO *out, GLOBAL const u64 *state, const drupe_random_params p)
{
    const i64 left = 4 - (i64)TAKEN, had = IS_WIDE ? 0 : min((i64)HAS32, p.n);
    const i64 words = IS_WIDE ? p.n : (p.n - had + 1) / 2, blocks = words > left ? (words - left + 3) / 4 : 0;
    if (get_global_id(0) == 0 && had) out[0] = NARROW((u32)WORD32);
    for (i64 b = get_global_id(0); b <= blocks; b += get_global_size(0)) {
        generator g;
        if (b)
            make_block(state, (u64)b, &g);
        else
            for (int k = 0; k < 4; k++) g.block[k] = state[6 + k];
        for (int k = 0; k < 4; k++) {
            const i64 w = left + 4 * (b - 1) + k;
            if (w < 0 || w >= words) continue;
#if WORD_BYTES == 8
            out[w] = (TO)(g.block[k] >> 11) * (TO)(1.0 / 9007199254740992.0);
#else
            out[had + 2 * w] = NARROW((u32)g.block[k]);
            if (had + 2 * w + 1 < p.n) out[had + 2 * w + 1] = NARROW((u32)(g.block[k] >> 32));
#endif
        }
    }
}
#else
KERNEL NAME(GLOBAL u64 *state, GLOBAL u64 *before, const drupe_random_params p)
{
    if (get_global_id(0)) return;
    for (int k = 0; k < 13; k++) before[k] = state[k];
    const i64 left = 4 - (i64)TAKEN, had = p.wide ? 0 : min((i64)HAS32, p.n);
    const i64 words = p.wide ? p.n : (p.n - had + 1) / 2, blocks = words > left ? (words - left + 3) / 4 : 0;
    if (blocks) {
        generator g;
        make_block(state, (u64)blocks, &g);
        for (int k = 0; k < 4; k++) {
            state[2 + k] = g.counter[k];
            state[6 + k] = g.block[k];
        }
        TAKEN = (u64)(words - left - 4 * (blocks - 1));
    } else {
        TAKEN += (u64)words;
    }
    if (p.wide) return;
    HAS32 = (u64)((p.n - had) & 1) | (HAS32 & (p.n == 0));
    if (words) WORD32 = state[6 + TAKEN - 1] >> 32;
}
#endif
