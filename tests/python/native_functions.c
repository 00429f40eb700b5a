/* Functions that the tests of drupe.native call. */
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void axpy(long n, double a, const double *x, double *y)
{
    for (long i = 0; i < n; i++) y[i] += a * x[i];
}

/* The same in pyMIC's way. */
void axpy_plain(const long *n, const double *a, const double *x, double *y)
{
    axpy(*n, *a, x, y);
}

void kinds(int8_t a, uint8_t b, short c, unsigned short d, int e, unsigned f, long g, unsigned long h,
           float i, double j, bool k, float complex l, double complex m, double *out)
{
    const double values[] = {a, b, c, d,         e,         f,        (double)g, (double)h,
                             i, j, k, crealf(l), cimagf(l), creal(m), cimag(m)};
    memcpy(out, values, sizeof values);
}

/* By address, as numbers of Python go without a declaration. */
void plain_kinds(const int64_t *a, const double *b, const double complex *c, const bool *d,
                 const void *nothing, double *out)
{
    const double values[] = {(double)*a, *b, creal(*c), cimag(*c), *d, nothing == NULL};
    memcpy(out, values, sizeof values);
}

double dot(long n, const double *x, const double *y)
{
    double sum = 0;
    for (long i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

signed char small(int x)
{
    return (signed char)x;
}

double complex conjugate(double complex z)
{
    return conj(z);
}

/* Wait for a byte of a pipe: a gate. */
void gate(int fd, double *x)
{
    char byte;
    while (read(fd, &byte, 1) < 0) {}
    if (x) *x += 1;
}

void announced_gate(int told, int fd, double *x)
{
    while (write(told, "x", 1) < 0) {}
    gate(fd, x);
}

/* The destructor writes to the first and waits at the second. */
static int farewell[2] = {-1, -1};
void say_farewell(const int64_t *told, const int64_t *fd)
{
    farewell[0] = (int)*told;
    farewell[1] = (int)*fd;
}

__attribute__((destructor)) static void leave(void)
{
    if (farewell[0] >= 0) announced_gate(farewell[0], farewell[1], NULL);
}

void fault(double *x)
{
    *(volatile double *)(x ? (uintptr_t)8 : 16) = 1;
}

void divide(const int *a, const int *b, int *c)
{
    *c = *a / *b;
}

void overflow_stack(volatile char *x)
{
    volatile char room[4096];
    memset((char *)room, *x, sizeof room);
    overflow_stack(room);
    *x = room[7];
}

void length(const char *text, long *n)
{
    *n = (long)strlen(text);
}

void sum16(const long *a, const long *b, const long *c, const long *d, const long *e, const long *f,
           const long *g, const long *h, const long *i, const long *j, const long *k, const long *l,
           const long *m, const long *n, const long *o, long *out)
{
    *out = *a + *b + *c + *d + *e + *f + *g + *h + *i + *j + *k + *l + *m + *n + *o;
}

void nothing(void) {}

void version(long *out)
{
    *out = VERSION;
}

static long counter;

void count(long *out)
{
    *out = ++counter;
}
