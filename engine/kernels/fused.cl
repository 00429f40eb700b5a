/* What fused_print.c writes fused kernels in, beside dialect.h: OpenCL C. Another language needs these names, and
 * the types and helpers of numeric.h, complex.cl and half.h.
 *
 *   INLINED          a function that is made part of its callers
 *   KERNEL_OF_ROWS   KERNEL, for groups of two dimensions
 *   ITEM(d), ITEMS(d)  this work-item's number in dimension d, and how many there are
 *   TEAM(d), PLACE(d), PLACES(d)  its group's number, its own in the group, and how many the group has
 *   CONSTANT(T, p), CONSTANT_PAIR(T, p)  a value of type T, or two, in the bytes at p
 *   TAKE_HOW(w, T, x, p, i)  elements p[i] to p[i + w - 1], of type T, to the array x; aligned to all of them
 *   GIVE_HOW(w, T, x, p, i)  the other way round
 *   HALVED(x)        a float rounded to float16 */
#define INLINED                static inline __attribute__((always_inline))
#define KERNEL_OF_ROWS         __kernel void
#define ITEM(d)                get_global_id(d)
#define ITEMS(d)               get_global_size(d)
#define TEAM(d)                get_group_id(d)
#define PLACE(d)               get_local_id(d)
#define PLACES(d)              get_local_size(d)
#define CONSTANT(T, p)         (*(const T *)(p))
#define CONSTANT_PAIR(T, p)    vload2(0, (const T *)(p))
#define TAKE_PLAIN(w, T, x, p, i) CAT(vstore, w)(*(GLOBAL const CAT(T, w) *)((p) + (i)), 0, (T *)(x));
#define GIVE_PLAIN(w, T, x, p, i) *(GLOBAL CAT(T, w) *)((p) + (i)) = CAT(vload, w)(0, (const T *)(x));
#define TAKE_HALF(w, T, x, p, i)  CAT(vstore, w)(CAT(vloada_half, w)(0, (p) + (i)), 0, x);
/* Some compilers store a vector of halves one by one. */
#define GIVE_HALF(w, T, x, p, i)                                                                             \
    {                                                                                                        \
        ushort bits[w];                                                                                      \
        UNROLL                                                                                               \
        for (int k = 0; k < w; k++) vstore_half_rte((x)[k], k, (half *)bits);                                \
        *(GLOBAL CAT(ushort, w) *)((p) + (i)) = CAT(vload, w)(0, bits);                                      \
    }
#define HALVED(x)                 fused_halved(x)
INLINED float fused_halved(float x)
{
    ushort bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return vload_half(0, (const half *)&bits);
}
