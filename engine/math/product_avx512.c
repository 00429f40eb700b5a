/* The loops of products for processors with AVX-512; compiled with the flags of x86-64-v4. */
#define LOOPS   drupe_product_avx512
#define COLUMNS 32
#include "math/product_loops.h"
