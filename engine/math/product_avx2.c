/* The loops of products for processors with AVX2; compiled with the flags of x86-64-v3. */
#define LOOPS drupe_product_avx2
#include "math/product_loops.h"
