/* What test_native.c loads. */
#include <stddef.h>
#include <stdint.h>

void add(int64_t n, double a, double *x);
void add(int64_t n, double a, double *x)
{
    for (int64_t i = 0; i < n; i++) x[i] += a;
}

void add_plain(const int64_t *n, const double *a, double *x);
void add_plain(const int64_t *n, const double *a, double *x)
{
    if (x) add(*n, *a, x);
}

int8_t negative(int8_t x);
int8_t negative(int8_t x)
{
    return (int8_t)-x;
}

/* Wait until somebody sets it. */
void wait_for(volatile int32_t *open);
void wait_for(volatile int32_t *open)
{
    while (!__atomic_load_n(open, __ATOMIC_ACQUIRE)) {}
}
