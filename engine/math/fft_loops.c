/* The loops of Fourier transforms, compiled once for each set of instructions (see CMakeLists.txt), with
 * vectors as wide as the registers. The lanes of a block are 64 bytes, so a register of 64 bytes holds all of
 * them. */
#include "math/fft_loops.h"
#include <string.h>

#ifndef FFT_NAME
#define FFT_NAME baseline
#endif
#define FFT_PASTE(a, b, c)    a##b##c
#define FFT_TABLE(name, type) FFT_PASTE(drupe_fft_, name, type)

#if defined(__AVX512F__)
#define FFT_BYTES 64
#elif defined(__AVX__)
#define FFT_BYTES 32
#else
#define FFT_BYTES 16
#endif

#define REAL       float
#define REAL_BYTES 4
#define FN(name)   name##_f32
#include "math/fft_body.h"
#undef REAL
#undef REAL_BYTES
#undef FN

#define REAL       double
#define REAL_BYTES 8
#define FN(name)   name##_f64
#include "math/fft_body.h"
