/* The enumerations of device properties: each a list X(CONSTANT, word). A word's position is the value of an
 * ENUM property, and the number of its bit in a FLAGS property. Python has the same words in drupe.enums. */
#ifndef DRUPE_DEVICE_WORDS_H
#define DRUPE_DEVICE_WORDS_H

#define DRUPE_WORDS_FP_CONFIG(X)                                                                             \
    X(FP_DENORM, denorm)                                                                                     \
    X(FP_INF_NAN, inf_nan)                                                                                   \
    X(FP_ROUND_TO_NEAREST, round_to_nearest)                                                                 \
    X(FP_ROUND_TO_ZERO, round_to_zero)                                                                       \
    X(FP_ROUND_TO_INF, round_to_inf)                                                                         \
    X(FP_FMA, fma)                                                                                           \
    X(FP_CORRECTLY_ROUNDED, correctly_rounded_divide_sqrt)                                                   \
    X(FP_SOFT_FLOAT, soft_float)

#define DRUPE_WORDS_CACHE(X)                                                                                 \
    X(CACHE_INDETERMINATE, indeterminate)                                                                    \
    X(CACHE_NONE, none)                                                                                      \
    X(CACHE_READ_ONLY, read_only)                                                                            \
    X(CACHE_READ_WRITE, read_write)

#define DRUPE_WORDS_LOCAL_MEM(X)                                                                             \
    X(LOCAL_MEM_NONE, none)                                                                                  \
    X(LOCAL_MEM_LOCAL, local)                                                                                \
    X(LOCAL_MEM_GLOBAL, global_mem)

#define DRUPE_WORDS_PARTITION(X)                                                                             \
    X(SPLIT_NONE, no_partition)                                                                              \
    X(SPLIT_EQUALLY, partition_equally)                                                                      \
    X(SPLIT_COUNTS, partition_by_counts)                                                                     \
    X(SPLIT_AFFINITY, partition_by_affinity_domain)

#define DRUPE_WORDS_DOMAIN(X)                                                                                \
    X(DOMAIN_NONE, not_applicable)                                                                           \
    X(DOMAIN_NUMA, numa)                                                                                     \
    X(DOMAIN_L4, L4_cache)                                                                                   \
    X(DOMAIN_L3, L3_cache)                                                                                   \
    X(DOMAIN_L2, L2_cache)                                                                                   \
    X(DOMAIN_L1, L1_cache)                                                                                   \
    X(DOMAIN_NEXT, next_partitionable)

#define DRUPE_WORDS_ORDER(X)                                                                                 \
    X(ORDER_RELAXED, relaxed)                                                                                \
    X(ORDER_ACQUIRE, acquire)                                                                                \
    X(ORDER_RELEASE, release)                                                                                \
    X(ORDER_ACQ_REL, acq_rel)                                                                                \
    X(ORDER_SEQ_CST, seq_cst)

#define DRUPE_WORDS_SCOPE(X)                                                                                 \
    X(SCOPE_WORK_ITEM, work_item)                                                                            \
    X(SCOPE_SUB_GROUP, sub_group)                                                                            \
    X(SCOPE_WORK_GROUP, work_group)                                                                          \
    X(SCOPE_DEVICE, device)                                                                                  \
    X(SCOPE_SYSTEM, system)

/* All of them: X(name in C, name in Python, list). */
#define DRUPE_ENUMERATIONS(X)                                                                                \
    X(fp_config, fp_config, DRUPE_WORDS_FP_CONFIG)                                                           \
    X(cache, global_mem_cache_type, DRUPE_WORDS_CACHE)                                                       \
    X(local_mem, local_mem_type, DRUPE_WORDS_LOCAL_MEM)                                                      \
    X(partition_kind, partition_property, DRUPE_WORDS_PARTITION)                                             \
    X(domain, partition_affinity_domain, DRUPE_WORDS_DOMAIN)                                                 \
    X(memory_order, memory_order, DRUPE_WORDS_ORDER)                                                         \
    X(memory_scope, memory_scope, DRUPE_WORDS_SCOPE)

#define DRUPE_WORD_CONSTANT(constant, word) DRUPE_##constant,
#define DRUPE_WORD_ENUM(name, python, list)                                                                  \
    typedef enum drupe_##name{list(DRUPE_WORD_CONSTANT) DRUPE_##name##_COUNT} drupe_##name;
DRUPE_ENUMERATIONS(DRUPE_WORD_ENUM)
#undef DRUPE_WORD_ENUM
#undef DRUPE_WORD_CONSTANT

#endif
