/* The engine's precompiled kernels on a CPU behind OpenCL: nothing to compile, and the fastest loops for this
 * processor.
 *
 * The driver calls a function of this process in the order of its queue, on a thread of its own
 * (clEnqueueNativeKernel), so that events, times and waits are those of any command. That function shares the
 * work-items with the threads of base/parallel.h, no more of them than the device has compute units. */
#include "base/parallel.h"
#include "opencl.h"
#include <string.h>

drupe_status drupe_cl_builtin_open(drupe_cl_kernel *kernel, const char *name)
{
    kernel->builtin = drupe_builtin_find(name);
    if (!kernel->builtin)
        return drupe_error_set(DRUPE_E_NOT_FOUND, "There is no built-in kernel '%s'.", name);
    kernel->nargs = kernel->builtin->nargs;
    kernel->max_group = kernel->multiple = 1;
    return DRUPE_OK;
}

static size_t value_size(const drupe_arg *arg)
{
    return arg->kind == DRUPE_ARG_POINTER ? sizeof(void *) : arg->size;
}

drupe_status drupe_cl_builtin_pack(const drupe_cl_kernel *kernel, const drupe_range *range, const drupe_arg *args,
                                   size_t nargs, drupe_cl_call *call)
{
    if (range->dims != 1 || range->offset[0])
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "Built-in kernels take one-dimensional ranges without an offset.");
    size_t at = offsetof(drupe_cl_call, values);
    bool fits = nargs <= DRUPE_CL_CALL_ARGS;
    for (size_t i = 0; fits && i < nargs; i++) {
        const size_t size = value_size(&args[i]);
        fits = args[i].kind != DRUPE_ARG_LOCAL && size <= sizeof *call - at;
        if (!fits) break;
        memcpy((char *)call + at, args[i].value, size);
        call->offsets[i] = (uint32_t)at;
        at += drupe_round16(size);
    }
    if (!fits)
        return drupe_error_set(DRUPE_E_INVALID, "'%s' cannot be given such arguments.", kernel->builtin->name);
    call->run = kernel->builtin->fn;
    call->items = range->global[0];
    call->threads = kernel->device->caps.units;
    call->nargs = (uint32_t)nargs;
    call->size = at < sizeof *call ? at : sizeof *call;
    return DRUPE_OK;
}

/* The work-items of one call, handed out one by one: a thread that is slow takes fewer. */
typedef struct loop {
    const drupe_cl_call *call;
    const void *const *args;
    _Atomic(size_t) next;
} loop;

static void run_some(size_t thread, void *user)
{
    loop *l = user;
    (void)thread;
    for (size_t i; (i = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed)) < l->call->items;)
        l->call->run(i, i + 1, l->call->items, l->args);
}

void CL_CALLBACK drupe_cl_builtin_run(void *user)
{
    const drupe_cl_call *call = user;
    const void *args[DRUPE_CL_CALL_ARGS];
    for (uint32_t i = 0; i < call->nargs; i++) args[i] = (const char *)user + call->offsets[i];
    loop l = {.call = call, .args = args};
    const size_t threads = call->items < call->threads ? call->items : call->threads;
    if (threads > 1)
        drupe_parallel(threads, run_some, &l);
    else
        run_some(0, &l);
}
