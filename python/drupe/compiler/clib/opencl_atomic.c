// Atomic operations of OpenCL C 1.2, whose pointers say which memory they mean. Those of floats exchange
// bits.

//: fence :
static inline void drupe_fence(void)
{
#if (__OPENCL_C_VERSION__ >= 200 && __OPENCL_C_VERSION__ < 300) ||                                           \
    (defined(__opencl_c_atomic_order_seq_cst) && defined(__opencl_c_atomic_scope_device))
    atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE, memory_order_seq_cst,
                           memory_scope_device);
#else
    mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
#endif
}

// clang-format off
//: long_atomics :
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
//: $A_$F_$T : | A = global local | F = add sub min max and or xor | T = int32 uint32
static inline $C drupe_$A_$F_$T(volatile $A $C *at, $C value) { return atomic_$F(at, value); }
//: $A_$F_$T : long_atomics | A = global local | F = add sub min max and or xor | T = int64 uint64
static inline $C drupe_$A_$F_$T(volatile $A $C *at, $C value) { return atom_$F(at, value); }
//: $A_exchange_$T : | A = global local | T = int32 uint32 float32
static inline $C drupe_$A_exchange_$T(volatile $A $C *at, $C value) { return atomic_xchg(at, value); }
//: $A_exchange_$T : long_atomics | A = global local | T = int64 uint64
static inline $C drupe_$A_exchange_$T(volatile $A $C *at, $C value) { return atom_xchg(at, value); }
//: $A_exchange_float64 : long_atomics | A = global local
static inline f64 drupe_$A_exchange_float64(volatile $A f64 *at, f64 value) { return as_double(atom_xchg((volatile $A u64 *)at, as_ulong(value))); }
//: $A_swap_$T : | A = global local | T = int32 uint32
static inline $C drupe_$A_swap_$T(volatile $A $C *at, $C expected, $C desired) { return atomic_cmpxchg(at, expected, desired); }
//: $A_swap_$T : long_atomics | A = global local | T = int64 uint64
static inline $C drupe_$A_swap_$T(volatile $A $C *at, $C expected, $C desired) { return atom_cmpxchg(at, expected, desired); }
//: $A_compare_exchange_$T : $A_swap_$T | A = global local | T = int32 uint32 int64 uint64
static inline $C drupe_$A_compare_exchange_$T(volatile $A $C *at, $C expected, $C desired) { return drupe_$A_swap_$T(at, expected, desired); }
//: $A_compare_exchange_float32 : $A_swap_uint32 | A = global local
static inline f32 drupe_$A_compare_exchange_float32(volatile $A f32 *at, f32 expected, f32 desired) { return as_float(drupe_$A_swap_uint32((volatile $A u32 *)at, as_uint(expected), as_uint(desired))); }
//: $A_compare_exchange_float64 : $A_swap_uint64 | A = global local
static inline f64 drupe_$A_compare_exchange_float64(volatile $A f64 *at, f64 expected, f64 desired) { return as_double(drupe_$A_swap_uint64((volatile $A u64 *)at, as_ulong(expected), as_ulong(desired))); }
//: $A_load_$T : | A = global local | T = int32 uint32 int64 uint64 floats
static inline $C drupe_$A_load_$T(const volatile $A $C *at) { return *at; }
//: $A_store_$T : | A = global local | T = int32 uint32 int64 uint64 floats
static inline void drupe_$A_store_$T(volatile $A $C *at, $C value) { *at = value; }
//: ordered_$A_$F_$T : $A_$F_$T fence | A = global local | F = add sub min max and or xor exchange | T = int32 uint32 int64 uint64
static inline $C drupe_ordered_$A_$F_$T(volatile $A $C *at, $C value) { drupe_fence(); $C old = drupe_$A_$F_$T(at, value); drupe_fence(); return old; }
//: ordered_$A_$F_$T : $A_$F_$T fence | A = global local | F = add sub min max exchange | T = floats
static inline $C drupe_ordered_$A_$F_$T(volatile $A $C *at, $C value) { drupe_fence(); $C old = drupe_$A_$F_$T(at, value); drupe_fence(); return old; }
//: ordered_$A_compare_exchange_$T : $A_compare_exchange_$T fence | A = global local | T = int32 uint32 int64 uint64 floats
static inline $C drupe_ordered_$A_compare_exchange_$T(volatile $A $C *at, $C expected, $C desired) { drupe_fence(); $C old = drupe_$A_compare_exchange_$T(at, expected, desired); drupe_fence(); return old; }
//: ordered_$A_load_$T : $A_load_$T fence | A = global local | T = int32 uint32 int64 uint64 floats
static inline $C drupe_ordered_$A_load_$T(volatile $A $C *at) { drupe_fence(); $C old = drupe_$A_load_$T(at); drupe_fence(); return old; }
//: ordered_$A_store_$T : $A_store_$T fence | A = global local | T = int32 uint32 int64 uint64 floats
static inline void drupe_ordered_$A_store_$T(volatile $A $C *at, $C value) { drupe_fence(); drupe_$A_store_$T(at, value); drupe_fence(); }
// clang-format on

//: $A_$F_float32 : combine_$F_float32 $A_swap_uint32 | A = global local | F = add sub min max
static inline f32 drupe_$A_$F_float32(volatile $A f32 *at, f32 value)
{
    u32 seen = as_uint(*at), old;
    do {
        old = seen;
        u32 fresh = as_uint(drupe_combine_$F_float32(as_float(old), value));
        seen = drupe_$A_swap_uint32((volatile $A u32 *)at, old, fresh);
    } while (seen != old);
    return as_float(old);
}

//: $A_$F_float64 : combine_$F_float64 $A_swap_uint64 | A = global local | F = add sub min max
static inline f64 drupe_$A_$F_float64(volatile $A f64 *at, f64 value)
{
    u64 seen = as_ulong(*at), old;
    do {
        old = seen;
        u64 fresh = as_ulong(drupe_combine_$F_float64(as_double(old), value));
        seen = drupe_$A_swap_uint64((volatile $A u64 *)at, old, fresh);
    } while (seen != old);
    return as_double(old);
}

//: fail :
// Notes the first failure of a launch: its code, line, work-item and two values.
static void drupe_fail(global i64 *failures, u32 code, i64 line, i64 item, i64 a, i64 b)
{
    if (atomic_cmpxchg((volatile global u32 *)failures, 0u, code) != 0) return;
    failures[1] = line;
    failures[2] = item;
    failures[3] = a;
    failures[4] = b;
}
