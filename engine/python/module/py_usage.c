/* The devices for the kernel's usage figures. On a thread of the kernel, without the GIL. */
#include "drupe/memory.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/module/module_room.h"
#include <inttypes.h>

#define DEVICES_MOST 32

size_t drupe_py_usage(char *json, size_t size)
{
    drupe_device_figures figures[DEVICES_MOST];
    drupe_py_strbuf to = {json, size, 0};
    size_t count = drupe_device_figures_of(figures, DEVICES_MOST);
    for (size_t i = 0; i < count; i++) {
        const drupe_device_use *use = &figures[i].use;
        if (!figures[i].used) continue;
        drupe_py_strbuf_add(&to, "%s{\"name\":\"", to.used ? "," : "[");
        drupe_py_strbuf_add_json(&to, use->name);
        drupe_py_strbuf_add(&to,
                            "\",\"filter\":\"%s\",\"backend\":\"%s\",\"memory_used\":%" PRIu64
                            ",\"memory_reserved\":%" PRIu64 ",\"memory_total\":%" PRIu64 "}",
                            use->filter, use->backend, use->used, use->reserved, use->total);
    }
    if (to.used) drupe_py_strbuf_add(&to, "]");
    return to.used + 1 >= size ? 0 : to.used; /* what does not fit is cut: then there is no list */
}
