/* Whether the kernels of a source print, as far as the text itself shows it. */
#include "core/program/program_room.h"
#include <string.h>

static bool contains(const char *bytes, size_t size, const char *word)
{
    return size > 0 && memmem(bytes, size, word, strlen(word)) != NULL;
}

/* OpExtInst of number 184, which is printf of OpenCL.std. */
static bool module_prints(const unsigned char *bytes, size_t size)
{
    enum { HEADER = 5, EXT_INST = 12, NUMBER = 4, PRINTF = 184 };
    size_t words = size / 4;
    for (size_t at = HEADER; at + NUMBER < words;) {
        uint32_t head, number;
        memcpy(&head, bytes + 4 * at, sizeof head);
        memcpy(&number, bytes + 4 * (at + NUMBER), sizeof number);
        size_t length = head >> 16;
        if ((head & 0xffffu) == EXT_INST && length > NUMBER && number == PRINTF) return true;
        at += length ? length : words;
    }
    return false;
}

bool drupe_prints_source(const drupe_source *source)
{
    switch (source->language) {
    case DRUPE_LANG_SPIRV: return module_prints(source->bytes, source->size);
    case DRUPE_LANG_BUILTIN:
    case DRUPE_LANG_C: return false; /* as other C code of the process does */
    default: return source->bytes && contains(source->bytes, source->size, "printf");
    }
}
