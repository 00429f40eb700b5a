/* The loops of products for every processor of the architecture. */
#define LOOPS drupe_product_baseline
#include "math/product_loops.h"
