/* Bytes somewhere: what kernel, server and executor hand to each other. */
#ifndef JK_BYTES_H
#define JK_BYTES_H

#include <stddef.h>

/* Borrowed for the call, or as long as the object it came from. */
typedef struct jk_bytes {
    const void *data;
    size_t size;
} jk_bytes;

/* The JSON frames of a message, which are signed. */
typedef enum jk_part { JK_HEADER, JK_PARENT_HEADER, JK_METADATA, JK_CONTENT, JK_SIGNED_PARTS } jk_part;

#endif
