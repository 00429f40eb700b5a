/* Element-wise kernels: out[i] = OP(in0[i], in1[i]).
 *
 * OpenCL C, one of two layouts:
 *   STRIDED 0   all operands contiguous but for constants (bits of CONSTANTS); argument drupe_map_head
 *   STRIDED 1   strides per operand, constants by the argument; argument drupe_map_params
 * CPU form: a contiguous chunk per work-item, 16-wide where VECTOR is 1 and no element exceeds VECTOR_LIMIT.
 * GPU form: grid-stride, four elements per load where contiguous.
 *
 * C99: a loop over contiguous blocks in the compute type; host_run.h cuts, casts and gathers. */
#if ARITY == 1
#define APPLY(a, b) OP(a)
#else
#define APPLY(a, b) OP(a, b)
#endif

#ifndef __OPENCL_VERSION__
static void CAT(NAME, _loop)(i64 n, void *out_, const void *const *in_)
{
    TR *out = out_;
    const TC *in0 = in_[0];
#if ARITY == 2
    const TC *in1 = in_[1];
#endif
    INDEPENDENT
    for (i64 i = 0; i < n; i++) {
        const TC a = LOAD(in0[i]);
#if ARITY == 2
        const TC b = LOAD(in1[i]);
#endif
        out[i] = (TR)(APPLY(a, b));
    }
}
static void NAME(size_t begin, size_t end, size_t size, const void *const *args)
{
    static const map_kernel kernel = {CAT(NAME, _loop), ARITY, TC_ID, TR_ID};
    map_run(&kernel, begin, end, size, args);
}

#else
#if ARITY == 1
#define INPUTS GLOBAL const TI0 *in0
#else
#define INPUTS GLOBAL const TI0 *in0, GLOBAL const TI1 *in1
#endif
#define CONSTANT(params, k) (*(const TC *)&params.value[k])

#if STRIDED
#define ELEMENT(o, a, b)                                                                                     \
    {                                                                                                        \
        const TC x = p.head.constants & 1 ? c0 : LOAD0(GET(1, in0, a));                                              \
        LOAD_SECOND(b)                                                                                       \
        PUT(0, out, o, STORE(APPLY(x, y)))                                                                   \
    }
#if ARITY == 1
#define LOAD_SECOND(b)
#else
#define LOAD_SECOND(b) const TC y = p.head.constants & 2 ? c1 : LOAD1(GET(2, in1, b));
#endif

KERNEL NAME(GLOBAL TO *out, INPUTS, const drupe_map_params p BOUNDS)
{
    const TC c0 = CONSTANT(p.head, 0), c1 = CONSTANT(p.head, 1);
    const int last = p.head.ndim - 1;
#if FORM_GPU
    for (i64 i = get_global_id(0); i < p.head.n; i += get_global_size(0)) {
        i64 rest = i, o = 0, a = 0, b = 0;
        for (int d = last; d >= 0; d--) {
            const i64 at = rest % p.shape[d];
            rest /= p.shape[d];
            o += at * p.strides[0][d];
            a += at * p.strides[1][d];
            b += at * p.strides[2][d];
        }
        ELEMENT(o, a, b)
    }
#else
    SPAN(begin, end, p.head.n);
    const i64 length = p.shape[last], so = p.strides[0][last], sa = p.strides[1][last], sb = p.strides[2][last];
    while (begin < end) {
        i64 rest = begin / length, o = 0, a = 0, b = 0;
        const i64 first = begin % length, m = min(length - first, end - begin);
        for (int d = last - 1; d >= 0; d--) {
            const i64 at = rest % p.shape[d];
            rest /= p.shape[d];
            o += at * p.strides[0][d];
            a += at * p.strides[1][d];
            b += at * p.strides[2][d];
        }
        INDEPENDENT
        for (i64 j = first; j < first + m; j++) ELEMENT(o + j * so, a + j * sa, b + j * sb)
        begin += m;
    }
#endif
}
#undef ELEMENT
#undef LOAD_SECOND

#else /* contiguous */
#if CONSTANTS & 1
#define GET0(i)  c0
#define WIDE0(i) ((CAT(TC, 16))(c0))
#define QUAD0(q) ((CAT(TI0, 4))(0))
#define PICK0(k) c0
#else
#define GET0(i)  LOAD0(GET(1, in0, i))
#define WIDE0(i) CAT(convert_, CAT(TC, 16))(TRUTH0(GET_WIDE(1, in0, i, 16, TI0)))
#define QUAD0(q) GET_WIDE(1, in0, 4 * (q), 4, TI0)
#define PICK0(k) LOAD0(a[k])
#endif
#if CONSTANTS & 2
#define GET1(i)  c1
#define WIDE1(i) ((CAT(TC, 16))(c1))
#define QUAD1(q) ((CAT(TI1, 4))(0))
#define PICK1(k) c1
#else
#define GET1(i)  LOAD1(GET(2, in1, i))
#define WIDE1(i) CAT(convert_, CAT(TC, 16))(TRUTH1(GET_WIDE(2, in1, i, 16, TI1)))
#define QUAD1(q) GET_WIDE(2, in1, 4 * (q), 4, TI1)
#define PICK1(k) LOAD1(b[k])
#endif

KERNEL NAME(GLOBAL TO *out, INPUTS, const drupe_map_head p BOUNDS)
{
    const TC c0 = CONSTANT(p, 0), c1 = CONSTANT(p, 1);
#if FORM_GPU
    const i64 step = get_global_size(0), quads = p.n / 4;
    for (i64 q = get_global_id(0); q < quads; q += step) {
        TI0 a[4];
        vstore4(QUAD0(q), 0, a);
#if ARITY == 2
        TI1 b[4];
        vstore4(QUAD1(q), 0, b);
#endif
        TO r[4];
        UNROLL
        for (int k = 0; k < 4; k++) r[k] = STORE(APPLY(PICK0(k), PICK1(k)));
        PUT_WIDE(0, out, 4 * q, 4, vload4(0, r))
    }
    for (i64 i = 4 * quads + get_global_id(0); i < p.n; i += step)
        PUT(0, out, i, STORE(APPLY(GET0(i), GET1(i))))
#else
    SPAN(begin, end, p.n);
#if VECTOR
    for (; begin + 16 <= end; begin += 16) {
#ifdef VECTOR_LIMIT
        if (any(fabs(WIDE0(begin)) > (TC)VECTOR_LIMIT)) {
            for (i64 i = begin; i < begin + 16; i++) PUT(0, out, i, STORE(APPLY(GET0(i), GET1(i))))
            continue;
        }
#endif
        PUT_WIDE(0, out, begin, 16, CAT(convert_, CAT(TO, 16))(APPLY(WIDE0(begin), WIDE1(begin))))
    }
#endif
    INDEPENDENT
    for (i64 i = begin; i < end; i++) PUT(0, out, i, STORE(APPLY(GET0(i), GET1(i))))
#endif
}
#undef GET0
#undef GET1
#undef WIDE0
#undef WIDE1
#undef QUAD0
#undef QUAD1
#undef PICK0
#undef PICK1
#endif
#undef INPUTS
#undef CONSTANT
#endif
#undef APPLY
