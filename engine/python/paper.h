/* Text of bounded size, for messages that are made without Python and without allocating. */
#ifndef DRUPE_PYTHON_PAPER_H
#define DRUPE_PYTHON_PAPER_H

#include "drupe/status.h"
#include <stddef.h>

/* `text` has room for `size` bytes, NUL included, of which `used` are written; what does not fit is cut. */
typedef struct drupe_py_paper {
    char *text;
    size_t size, used;
} drupe_py_paper;

void drupe_py_paper_add(drupe_py_paper *to, const char *format, ...) DRUPE_PRINTF(2, 3);
/* The text as the inside of a JSON string; what is no UTF-8 is replaced. */
void drupe_py_paper_add_json(drupe_py_paper *to, const char *text);
/* At most `most` bytes of the text, which is not cut inside of a character. */
size_t drupe_py_utf8_cut(const char *text, size_t most);

#endif
