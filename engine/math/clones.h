/* Functions that are compiled for several instruction sets, of which the processor's best is taken when the
 * program is loaded. Only where compiler and linker do all of that; elsewhere the word means nothing. */
#ifndef DRUPE_MATH_CLONES_H
#define DRUPE_MATH_CLONES_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) &&             \
    defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DRUPE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DRUPE_CLONES
#endif

/* A function that is part of such ones: by itself it would be compiled for the plainest processor. */
#if defined(__GNUC__)
#define DRUPE_CLONE_PART static inline __attribute__((always_inline))
#else
#define DRUPE_CLONE_PART static inline
#endif

#endif
