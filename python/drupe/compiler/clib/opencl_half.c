// float16 as OpenCL converts it.

//: to_half_$T : | T = floats
static inline u16 drupe_to_half_$T($C x)
{
    u16 bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return bits;
}

//: from_half :
static inline f32 drupe_from_half(u16 bits)
{
    return vload_half(0, (const half *)&bits);
}
