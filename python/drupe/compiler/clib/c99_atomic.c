// Atomic operations on global memory, by the compiler's own functions, or by the engine's where it has none.
// A group's local memory belongs to one thread: there the operations are ordinary ones.

//: fence :
static inline void drupe_fence(void)
{
#ifdef __TINYC__
    drupe_fence_();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

//: try_u32 :
// Whether *at was *expected and is now `desired`; *expected becomes what it was.
static inline int drupe_try_u32(volatile u32 *at, u32 *expected, u32 desired)
{
#ifdef __TINYC__
    const u32 wanted = *expected;
    *expected = drupe_cas32_((u32 *)at, wanted, desired);
    return *expected == wanted;
#else
    return __atomic_compare_exchange_n(at, expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

//: try_u64 :
static inline int drupe_try_u64(volatile u64 *at, u64 *expected, u64 desired)
{
#ifdef __TINYC__
    const u64 wanted = *expected;
    *expected = drupe_cas64_((u64 *)at, wanted, desired);
    return *expected == wanted;
#else
    return __atomic_compare_exchange_n(at, expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

//: global_compare_exchange_$T : try_$U | T = int32 uint32 int64 uint64 floats
static inline $C drupe_global_compare_exchange_$T(volatile $C *at, $C expected, $C desired)
{
    union {
        $C x;
        $U bits;
    } old, fresh;
    old.x = expected;
    fresh.x = desired;
    drupe_try_$U((volatile $U *)at, &old.bits, fresh.bits);
    return old.x;
}

//: global_$F_$T : combine_$F_$T try_$U | F = add sub and or xor | T = int32 uint32 int64 uint64
static inline $C drupe_global_$F_$T(volatile $C *at, $C value)
{
#ifdef __TINYC__
    $U old = *(volatile $U *)at;
    while (!drupe_try_$U((volatile $U *)at, &old, ($U)drupe_combine_$F_$T(($C)old, value))) continue;
    return ($C)old;
#else
    return __atomic_fetch_$F(at, value, __ATOMIC_RELAXED);
#endif
}

//: global_$F_$T : combine_$F_$T try_$U | F = add sub min max exchange | T = int32 uint32 int64 uint64 floats
static inline $C drupe_global_$F_$T(volatile $C *at, $C value)
{
    union {
        $C x;
        $U bits;
    } old, fresh;
    old.bits = *(volatile $U *)at;
    do fresh.x = drupe_combine_$F_$T(old.x, value);
    while (!drupe_try_$U((volatile $U *)at, &old.bits, fresh.bits));
    return old.x;
}

//: local_$F_$T : combine_$F_$T | F = add sub min max and or xor exchange | T = int32 uint32 int64 uint64
static inline $C drupe_local_$F_$T($C *at, $C value)
{
    $C old = *at;
    *at = drupe_combine_$F_$T(old, value);
    return old;
}

//: local_$F_$T : combine_$F_$T | F = add sub min max exchange | T = floats
static inline $C drupe_local_$F_$T($C *at, $C value)
{
    $C old = *at;
    *at = drupe_combine_$F_$T(old, value);
    return old;
}

//: local_compare_exchange_$T : | T = int32 uint32 int64 uint64
static inline $C drupe_local_compare_exchange_$T($C *at, $C expected, $C desired)
{
    $C old = *at;
    if (old == expected) *at = desired;
    return old;
}

//: local_compare_exchange_$T : same_$T | T = floats
static inline $C drupe_local_compare_exchange_$T($C *at, $C expected, $C desired)
{
    $C old = *at;
    if (drupe_same_$T(old, expected)) *at = desired;
    return old;
}

// clang-format off
//: $A_load_$T : | A = global local | T = int32 uint32 int64 uint64 floats
static inline $C drupe_$A_load_$T(const volatile $C *at) { return *at; }
//: $A_store_$T : | A = global local | T = int32 uint32 int64 uint64 floats
static inline void drupe_$A_store_$T(volatile $C *at, $C value) { *at = value; }
//: ordered_$A_$F_$T : $A_$F_$T fence | A = global | F = add sub min max and or xor exchange | T = int32 uint32 int64 uint64
static inline $C drupe_ordered_$A_$F_$T($C *at, $C value) { drupe_fence(); $C old = drupe_$A_$F_$T(at, value); drupe_fence(); return old; }
//: ordered_$A_$F_$T : $A_$F_$T fence | A = global | F = add sub min max exchange | T = floats
static inline $C drupe_ordered_$A_$F_$T($C *at, $C value) { drupe_fence(); $C old = drupe_$A_$F_$T(at, value); drupe_fence(); return old; }
//: ordered_$A_compare_exchange_$T : $A_compare_exchange_$T fence | A = global | T = int32 uint32 int64 uint64 floats
static inline $C drupe_ordered_$A_compare_exchange_$T($C *at, $C expected, $C desired) { drupe_fence(); $C old = drupe_$A_compare_exchange_$T(at, expected, desired); drupe_fence(); return old; }
//: ordered_$A_load_$T : $A_load_$T fence | A = global | T = int32 uint32 int64 uint64 floats
static inline $C drupe_ordered_$A_load_$T($C *at) { drupe_fence(); $C old = drupe_$A_load_$T(at); drupe_fence(); return old; }
//: ordered_$A_store_$T : $A_store_$T fence | A = global | T = int32 uint32 int64 uint64 floats
static inline void drupe_ordered_$A_store_$T($C *at, $C value) { drupe_fence(); drupe_$A_store_$T(at, value); drupe_fence(); }
// clang-format on

//: fail : try_u32
// Notes the first failure of a launch: its code, line, work-item and two values.
static __attribute__((noinline, cold)) void drupe_fail(i64 *failures, u32 code, i64 line, i64 item, i64 a,
                                                       i64 b)
{
    u32 none = 0;
    if (!drupe_try_u32((volatile u32 *)failures, &none, code)) return;
    failures[1] = line;
    failures[2] = item;
    failures[3] = a;
    failures[4] = b;
}
