/* Functions of shared libraries. The C library's own stand for those of users. */
#include "drupe/native.h"
#include "walk.h"

static drupe_status call(struct walker *w, drupe_native_library *library)
{
    static const drupe_native_param params[] = {
        {true, DRUPE_DTYPE_NONE}, {true, DRUPE_DTYPE_NONE}, {false, DRUPE_UINT64}};
    const drupe_native_signature signature = {DRUPE_DTYPE_NONE, params, 3};
    drupe_native_function *copy = NULL;
    GO(drupe_native_function_open(library, "memmove", &signature, &copy));
    drupe_memory *from = w->memory[0], *to = w->memory[1];
    const drupe_native_arg args[] = {
        {.words = {(uintptr_t)drupe_memory_pointer(to), 0}, .memory = to},
        {.words = {(uintptr_t)drupe_memory_pointer(from), 0}, .reads_only = true, .memory = from},
        {.words = {64, 0}}};
    const drupe_native_call made = {.function = copy, .args = args, .count = 3};
    const drupe_submission s = {.queue = w->queue};
    drupe_status status = drupe_native_submit(&s, &made, &w->events[0]);
    bool right = strcmp(drupe_native_function_name(copy), "memmove") == 0;
    drupe_native_function_release(drupe_native_function_retain(copy));
    drupe_native_function_release(copy);
    if (status == DRUPE_OK) status = drupe_event_wait(w->events[0], LONG);
    GO(status);
    return right ? DRUPE_OK : DRUPE_E_INTERNAL;
}

static drupe_status native(struct walker *w)
{
    drupe_native_library *library = NULL;
    GO(walk_open_memory(w));
    GO(drupe_native_open("libc.so.6", &library));
    drupe_status status = call(w, library);
    drupe_queue_collect(w->queue);
    if (status == DRUPE_OK && drupe_native_calls(library) == 0) status = drupe_native_close(library);
    drupe_native_release(drupe_native_retain(library));
    drupe_native_release(library);
    return status;
}

const walk_scene walk_native_scenes[] = {{"native function", native, false}, {NULL, NULL, false}};
