/* Bytes somewhere: what kernel, server and executor hand to each other. */
#ifndef JK_BYTES_H
#define JK_BYTES_H

#include <stddef.h>

/* Borrowed for the call, or as long as the object it came from. */
typedef struct jk_bytes {
    const void *data;
    size_t size;
} jk_bytes;

#endif
