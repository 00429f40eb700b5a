// What atomic operations make of the old value and theirs, and fences around those that are not relaxed.

// clang-format off
//: combine_add_$T : | T = int32 uint32 int64 uint64
static inline $C drupe_combine_add_$T($C old, $C value) { return ($C)(($U)old + ($U)value); }
//: combine_sub_$T : | T = int32 uint32 int64 uint64
static inline $C drupe_combine_sub_$T($C old, $C value) { return ($C)(($U)old - ($U)value); }
//: combine_add_$T : | T = floats
static inline $C drupe_combine_add_$T($C old, $C value) { return old + value; }
//: combine_sub_$T : | T = floats
static inline $C drupe_combine_sub_$T($C old, $C value) { return old - value; }
//: combine_min_$T : | T = int32 uint32 int64 uint64 floats
static inline $C drupe_combine_min_$T($C old, $C value) { return value < old ? value : old; }
//: combine_max_$T : | T = int32 uint32 int64 uint64 floats
static inline $C drupe_combine_max_$T($C old, $C value) { return value > old ? value : old; }
//: combine_and_$T : | T = int32 uint32 int64 uint64
static inline $C drupe_combine_and_$T($C old, $C value) { return old & value; }
//: combine_or_$T : | T = int32 uint32 int64 uint64
static inline $C drupe_combine_or_$T($C old, $C value) { return old | value; }
//: combine_xor_$T : | T = int32 uint32 int64 uint64
static inline $C drupe_combine_xor_$T($C old, $C value) { return old ^ value; }
//: combine_exchange_$T : | T = int32 uint32 int64 uint64 floats
static inline $C drupe_combine_exchange_$T($C old, $C value) { (void)old; return value; }
// clang-format on
