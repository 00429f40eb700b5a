/* The devices for the kernel's usage figures. On a thread of the kernel, without the GIL. */
#include "drupe/memory.h"
#include "engine/python/module/module_room.h"
#include "engine/python/runtime/runtime_room.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEVICES_MOST 32

/* As the inside of a JSON string: device names are plain text, and what is not is left out. */
static void text_plain(const char *text, char *plain, size_t size)
{
    size_t used = 0;
    for (; *text && used + 1 < size; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') plain[used++] = *text;
    }
    plain[used] = '\0';
}

size_t drupe_py_usage(char *json, size_t size)
{
    drupe_device_figures figures[DEVICES_MOST];
    size_t count = drupe_device_figures_of(figures, DEVICES_MOST), used = 0;
    for (size_t i = 0; i < count; i++) {
        const drupe_device_use *use = &figures[i].use;
        if (!figures[i].used) continue;
        char name[sizeof use->name];
        text_plain(use->name, name, sizeof name);
        int length =
            snprintf(json + used, size - used,
                     "%c{\"name\":\"%s\",\"filter\":\"%s\",\"backend\":\"%s\",\"memory_used\":%" PRIu64
                     ",\"memory_reserved\":%" PRIu64 ",\"memory_total\":%" PRIu64 "}",
                     used ? ',' : '[', name, use->filter, use->backend, use->used, use->reserved, use->total);
        if (length < 0 || (size_t)length + 1 >= size - used) return 0;
        used += (size_t)length;
    }
    if (used == 0) return 0;
    json[used] = ']';
    return used + 1;
}
