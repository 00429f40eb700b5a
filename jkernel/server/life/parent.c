/* The header of a request, which its outputs carry. */
#include "jkernel/server/life/life_room.h"

#include <string.h>

jk_parent *jk_parent_create(jk_bytes header)
{
    jk_parent *parent = jk_memory_take(sizeof *parent + header.size);
    if (!parent) return NULL;
    atomic_init(&parent->references, 1);
    atomic_init(&parent->silent, false);
    atomic_init(&parent->number, 0);
    parent->below = NULL;
    parent->size = header.size;
    if (header.size) memcpy(parent->header, header.data, header.size);
    return parent;
}

jk_parent *jk_parent_retain(jk_parent *parent)
{
    if (parent) atomic_fetch_add_explicit(&parent->references, 1, memory_order_relaxed);
    return parent;
}

void jk_parent_release(jk_parent *parent)
{
    if (parent && atomic_fetch_sub_explicit(&parent->references, 1, memory_order_acq_rel) == 1)
        jk_memory_release(parent);
}

jk_bytes jk_parent_header(const jk_parent *parent)
{
    return (jk_bytes){parent->header, parent->size};
}

void jk_parent_silence(jk_parent *parent, bool silent)
{
    atomic_store_explicit(&parent->silent, silent, memory_order_relaxed);
}

bool jk_parent_silent(const jk_parent *parent)
{
    return atomic_load_explicit(&parent->silent, memory_order_relaxed);
}

void jk_parent_set_number(jk_parent *parent, unsigned number)
{
    atomic_store_explicit(&parent->number, number, memory_order_relaxed);
}

unsigned jk_parent_number(const jk_parent *parent)
{
    return atomic_load_explicit(&parent->number, memory_order_relaxed);
}
