/* Which of the compiled loops this processor can run. DRUPE_HOST_VARIANT=baseline, avx2 or avx512 asks for
 * one, as it does for the kernels of `host`. */
#include "base/base.h"
#include "math/fft_loops.h"
#include <stdlib.h>
#include <string.h>

static const fft_loops *chosen[2];

static void choose(void)
{
    chosen[0] = &drupe_fft_baseline_f32;
    chosen[1] = &drupe_fft_baseline_f64;
#if defined(__x86_64__)
    const char *wanted = getenv("DRUPE_HOST_VARIANT");
    const bool any = !wanted || !*wanted;
    if ((any || strcmp(wanted, "avx512") == 0) && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) {
        chosen[0] = &drupe_fft_avx512_f32;
        chosen[1] = &drupe_fft_avx512_f64;
    } else if ((any || strcmp(wanted, "baseline") != 0) && __builtin_cpu_supports("avx2") &&
               __builtin_cpu_supports("fma")) {
        chosen[0] = &drupe_fft_avx2_f32;
        chosen[1] = &drupe_fft_avx2_f64;
    }
#endif
}

const fft_loops *drupe_fft_loops(bool wide)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose);
    return chosen[wide];
}
