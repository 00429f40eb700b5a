/* Element-wise kernels: out[i] = OP(in0[i], in1[i], in2[i]), with one to three inputs.
 *
 * OpenCL C, one of two layouts:
 *   STRIDED 0   all operands contiguous but for constants (bits of CONSTANTS); argument drupe_map_head
 *   STRIDED 1   strides per operand, constants by the argument; argument drupe_map_params
 * CPU form: a contiguous chunk per work-item, 16-wide where VECTOR is 1 and no element exceeds VECTOR_LIMIT.
 * GPU form: grid-stride, four elements per load where contiguous and QUADS is 1.
 *
 * C99: a loop over contiguous blocks in the compute type; host_run.h cuts, casts and gathers. */
#if ARITY == 1
#define APPLY(a, b, c) OP(a)
#elif ARITY == 2
#define APPLY(a, b, c) OP(a, b)
#else
#define APPLY(a, b, c) OP(a, b, c)
#endif

#ifndef __OPENCL_VERSION__
#if WHOLE /* n is a multiple of the lanes, see map_whole(): so that compilers see it, too */
#define LOOP     CAT(NAME, _whole)
#define COUNT(n) ((n) & -WHOLE_LANES(TREAL))
#define EACH     VECTORWISE
APART
#else
#define LOOP     CAT(NAME, _loop)
#define COUNT(n) (n)
#define EACH     INDEPENDENT
#endif
static void LOOP(i64 n, void *out_, const void *const *in_)
{
    const i64 count = COUNT(n);
    TR *out = out_;
    const TC0 *in0 = in_[0];
#if ARITY > 1
    const TC1 *in1 = in_[1];
#endif
#if ARITY > 2
    const TC2 *in2 = in_[2];
#endif
    EACH
    for (i64 i = 0; i < count; i++) {
        const TC0 a = LOAD0(in0[i]);
#if ARITY > 1
        const TC1 b = LOAD1(in1[i]);
#endif
#if ARITY > 2
        const TC2 c = LOAD2(in2[i]);
#endif
        out[i] = (TR)(APPLY(a, b, c));
    }
}
#if WHOLE
static void CAT(NAME, _loop)(i64 n, void *out, const void *const *in)
{
    map_whole(LOOP, n, out, in, ARITY, sizeof(TC), sizeof(TR), WHOLE_LANES(TREAL));
}
#endif
#undef LOOP
#undef COUNT
#undef EACH
MAP_KERNEL(NAME, CAT(NAME, _loop), MOVES, ARITY, TR_ID, TC_IDS)

#else
#if ARITY == 1
#define INPUTS GLOBAL const TI0 *in0
#elif ARITY == 2
#define INPUTS GLOBAL const TI0 *in0, GLOBAL const TI1 *in1
#else
#define INPUTS GLOBAL const TI0 *in0, GLOBAL const TI1 *in1, GLOBAL const TI2 *in2
#endif
#define CONSTANT(params, k) CAT(CONSTANT_OF, k)(params.value[k])
#define CONSTANT0(params) const TC0 c0 = CONSTANT(params, 0);
#if ARITY > 1
#define CONSTANT1(params) const TC1 c1 = CONSTANT(params, 1);
#else
#define CONSTANT1(params)
#endif
#if ARITY > 2
#define CONSTANT2(params) const TC2 c2 = CONSTANT(params, 2);
#else
#define CONSTANT2(params)
#endif
#define ALL_CONSTANTS(params) CONSTANT0(params) CONSTANT1(params) CONSTANT2(params)

#if STRIDED
#if ARITY > 1
#define SECOND(i) const TC1 y = p.head.constants & 2 ? c1 : LOAD1(GET(2, in1, i));
#else
#define SECOND(i)
#endif
#if ARITY > 2
#define THIRD(i) const TC2 z = p.head.constants & 4 ? c2 : LOAD2(GET(3, in2, i));
#else
#define THIRD(i)
#endif
#define ELEMENT(o, a, b, c)                                                                                  \
    {                                                                                                        \
        const TC0 x = p.head.constants & 1 ? c0 : LOAD0(GET(1, in0, a));                                     \
        SECOND(b)                                                                                            \
        THIRD(c)                                                                                             \
        PUT(0, out, o, STORE(APPLY(x, y, z)))                                                                \
    }

KERNEL NAME(GLOBAL TO *out, INPUTS, const drupe_map_params p BOUNDS)
{
    ALL_CONSTANTS(p.head)
    const int last = p.head.ndim - 1;
#if FORM_GPU
    for (i64 i = get_global_id(0); i < p.head.n; i += get_global_size(0)) {
        i64 rest = i, o = 0, a = 0, b = 0, c = 0;
        for (int d = last; d >= 0; d--) {
            const i64 at = rest % p.shape[d];
            rest /= p.shape[d];
            o += at * p.strides[0][d];
            a += at * p.strides[1][d];
            b += at * p.strides[2][d];
            c += at * p.strides[3][d];
        }
        ELEMENT(o, a, b, c)
    }
#else
    SPAN(begin, end, p.head.n);
    const i64 length = p.shape[last], so = p.strides[0][last], sa = p.strides[1][last];
    const i64 sb = p.strides[2][last], sc = p.strides[3][last];
    while (begin < end) {
        i64 rest = begin / length, o = 0, a = 0, b = 0, c = 0;
        const i64 first = begin % length, m = min(length - first, end - begin);
        for (int d = last - 1; d >= 0; d--) {
            const i64 at = rest % p.shape[d];
            rest /= p.shape[d];
            o += at * p.strides[0][d];
            a += at * p.strides[1][d];
            b += at * p.strides[2][d];
            c += at * p.strides[3][d];
        }
        INDEPENDENT
        for (i64 j = first; j < first + m; j++) ELEMENT(o + j * so, a + j * sa, b + j * sb, c + j * sc)
        begin += m;
    }
#endif
}

#else /* contiguous */
#if CONSTANTS & 1
#define GET0(i)  c0
#define WIDE0(i) ((CAT(TC, 16))(c0))
#define QUAD0(q) ((CAT(TV0, 4))(0))
#define PICK0(k) c0
#else
#define GET0(i)  LOAD0(GET(1, in0, i))
#define WIDE0(i) CAT(convert_, CAT(TC, 16))(TRUTH0(GET_WIDE(1, in0, i, 16, TV0)))
#define QUAD0(q) GET_WIDE(1, in0, 4 * (q), 4, TV0)
#define PICK0(k) LOAD0(a[k])
#endif
#if CONSTANTS & 2
#define GET1(i)  c1
#define WIDE1(i) ((CAT(TC, 16))(c1))
#define QUAD1(q) ((CAT(TV1, 4))(0))
#define PICK1(k) c1
#else
#define GET1(i)  LOAD1(GET(2, in1, i))
#define WIDE1(i) CAT(convert_, CAT(TC, 16))(TRUTH1(GET_WIDE(2, in1, i, 16, TV1)))
#define QUAD1(q) GET_WIDE(2, in1, 4 * (q), 4, TV1)
#define PICK1(k) LOAD1(b[k])
#endif

#if CONSTANTS & 4
#define GET2(i)  c2
#define QUAD2(q) ((CAT(TV2, 4))(0))
#define PICK2(k) c2
#else
#define GET2(i)  LOAD2(GET(3, in2, i))
#define QUAD2(q) GET_WIDE(3, in2, 4 * (q), 4, TV2)
#define PICK2(k) LOAD2(c[k])
#endif

KERNEL NAME(GLOBAL TO *out, INPUTS, const drupe_map_head p BOUNDS)
{
    ALL_CONSTANTS(p)
#if FORM_GPU
    const i64 step = get_global_size(0), quads = QUADS ? p.n / 4 : 0;
#if QUADS
    for (i64 q = get_global_id(0); q < quads; q += step) {
        TV0 a[4];
        vstore4(QUAD0(q), 0, a);
#if ARITY > 1
        TV1 b[4];
        vstore4(QUAD1(q), 0, b);
#endif
#if ARITY > 2
        TV2 c[4];
        vstore4(QUAD2(q), 0, c);
#endif
        TV r[4];
        UNROLL
        for (int k = 0; k < 4; k++) r[k] = STORE(APPLY(PICK0(k), PICK1(k), PICK2(k)));
        PUT_WIDE(0, out, 4 * q, 4, vload4(0, r))
    }
#endif
    for (i64 i = 4 * quads + get_global_id(0); i < p.n; i += step)
        PUT(0, out, i, STORE(APPLY(GET0(i), GET1(i), GET2(i))))
#else
    SPAN(begin, end, p.n);
#if VECTOR
    for (; begin + 16 <= end; begin += 16) {
#ifdef VECTOR_LIMIT
        if (any(fabs(WIDE0(begin)) > (TC)VECTOR_LIMIT)) {
            for (i64 i = begin; i < begin + 16; i++) PUT(0, out, i, STORE(APPLY(GET0(i), GET1(i), GET2(i))))
            continue;
        }
#endif
        PUT_WIDE(0, out, begin, 16, CAT(convert_, CAT(TV, 16))(APPLY(WIDE0(begin), WIDE1(begin), 0)))
    }
#endif
    INDEPENDENT
    for (i64 i = begin; i < end; i++) PUT(0, out, i, STORE(APPLY(GET0(i), GET1(i), GET2(i))))
#endif
}
#endif
#endif
#undef APPLY
