/* out[i * stride] = start + i * step, in the compute type and rounded once to the stored one. */
#ifndef __OPENCL_VERSION__
static void CAT(NAME, _loop)(i64 begin, i64 n, const void *start_, const void *step_, void *out_)
{
    const TC start = *(const TC *)start_, step = *(const TC *)step_;
    TC *out = out_;
    for (i64 i = 0; i < n; i++) out[i] = SEQUENCE(start, step, begin + i);
}
static void NAME(size_t begin, size_t end, size_t size, const void *const *args)
{
    sequence_run(CAT(NAME, _loop), TC_ID, begin, end, size, args);
}

#else
KERNEL NAME(GLOBAL TO *out, const drupe_sequence_params p BOUNDS)
{
    const TC start = CONSTANT_OF(p.start), step = CONSTANT_OF(p.step);
#if FORM_GPU
    for (i64 i = get_global_id(0); i < p.n; i += get_global_size(0))
#else
    SPAN(begin, end, p.n);
    for (i64 i = begin; i < end; i++)
#endif
        PUT(0, out, i * p.stride, STORE(SEQUENCE(start, step, i)))
}
#endif
