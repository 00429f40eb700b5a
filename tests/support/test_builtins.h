/* Kernels for tests of the engine that must not depend on the real kernels: linked in place of
 * engine/kernels.
 *
 * test_add   (a f32*, b f32*, out f32*, n u64)              out[i] = a[i] + b[i]
 * test_mad   (out u64*, in u64*, n u64, mul u64, add u64)   out[i] = in[i] * mul + add; order matters
 * test_spin  (out u64*, rounds u64)                         out[item] = so many rounds of a generator
 * test_gid   (out u64*)                                     out[item] = item
 * test_worker(out u64*, rounds u64)                         out[item] = the thread that ran it, after
 * `rounds`
 * test_gate  (word u64*)                                    waits until the word is not 0 */
#ifndef TEST_BUILTINS_H
#define TEST_BUILTINS_H

#include <stdint.h>

/* What test_spin writes for one item. */
uint64_t test_spin_result(uint64_t item, uint64_t rounds);

#endif
