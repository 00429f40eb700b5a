/* Calls: one block of memory for each, which the submission keeps. */
#include "native/native_room.h"
#include <stdlib.h>
#include <string.h>

#define KEEPS_FEW 24u

typedef struct call_slot {
    uint64_t words[2];
    const void *address; /* of the words, where they are passed by address */
} call_slot;

typedef struct call_block {
    drupe_native_function *function; /* retained */
    ffi_cif *cif;
    size_t result_size;
    void *result; /* where it goes, or NULL */
    _Atomic(bool) inside;
    _Alignas(16) unsigned char answer[32]; /* libffi writes whole registers */
    void **values;                         /* behind the slots */
    call_slot slots[];
} call_block;

static void block_release(void *user)
{
    call_block *block = user;
    drupe_native_library *library = block->function->library;
    if (atomic_load(&block->inside)) atomic_store(&library->stuck, true);
    drupe_native_end(library);
    drupe_native_function_release(block->function);
    free(block);
}

static drupe_status block_run(void *user)
{
    call_block *block = user;
    atomic_store_explicit(&block->inside, true, memory_order_relaxed);
    ffi_call(block->cif, block->function->code, block->answer, block->values);
    atomic_store_explicit(&block->inside, false, memory_order_relaxed);
    if (block->result) memcpy(block->result, block->answer, block->result_size);
    return DRUPE_OK;
}

static void take_arg(call_block *block, size_t i, const drupe_native_arg *arg)
{
    call_slot *slot = &block->slots[i];
    slot->words[0] = arg->words[0];
    slot->words[1] = arg->words[1];
    slot->address = slot->words;
    block->values[i] = arg->inside ? (void *)&slot->address : (void *)slot->words;
}

static call_block *block_new(const drupe_native_call *call)
{
    const size_t count = call->count;
    call_block *block = malloc(sizeof *block + count * (sizeof(call_slot) + sizeof(void *)));
    if (!block) return NULL;
    block->function = drupe_native_function_retain(call->function);
    block->cif = drupe_native_interface(call->function, count);
    block->result = call->result;
    block->result_size = call->result ? drupe_dtype_size(call->function->result) : 0;
    atomic_init(&block->inside, false);
    block->values = (void **)&block->slots[count];
    for (size_t i = 0; i < count; i++) take_arg(block, i, &call->args[i]);
    return block;
}

/* --- Submission ---------------------------------------------------------------------------------------- */

static drupe_status check(const drupe_submission *s, const drupe_native_call *call)
{
    const drupe_native_function *function = call ? call->function : NULL;
    if (!s || !s->queue || !function || (call->count && !call->args))
        return drupe_error_set(DRUPE_E_INVALID, "A call needs a queue, a function and its arguments.");
    if (function->declared ? call->count != function->count : call->count > DRUPE_NATIVE_PLAIN)
        return drupe_error_set(DRUPE_E_INVALID, "'%s' takes %s%zu arguments, %zu were given.", function->name,
                               function->declared ? "" : "at most ",
                               function->declared ? function->count : (size_t)DRUPE_NATIVE_PLAIN,
                               call->count);
    if (call->result && function->result == DRUPE_DTYPE_NONE)
        return drupe_error_set(DRUPE_E_INVALID, "'%s' was not declared to have a result.", function->name);
    return DRUPE_OK;
}

typedef struct call_keeps {
    drupe_keep few[KEEPS_FEW], *list;
    size_t count;
    drupe_effects effects;
} call_keeps;

static void add_memory(call_keeps *all, const drupe_queue *queue, drupe_memory *memory, bool reads,
                       bool writes)
{
    if (!memory) return;
    const uint64_t bit = UINT64_C(1) << all->count;
    if (reads) all->effects.reads |= bit;
    if (writes) all->effects.writes |= bit;
    all->list[all->count++] = drupe_memory_keep(memory, queue);
}

/* The block's, the memory's, then the caller's: effects have bits for the first 64. */
static void gather(const drupe_submission *s, const drupe_native_call *call, call_block *block,
                   call_keeps *all)
{
    all->count = 0;
    all->effects = (drupe_effects){0};
    all->list[all->count++] = (drupe_keep){block, block_release};
    for (size_t i = 0; i < call->count; i++) {
        const drupe_native_arg *arg = &call->args[i];
        add_memory(all, s->queue, arg->memory, true, !arg->reads_only);
    }
    add_memory(all, s->queue, call->result_memory, false, true);
    for (size_t i = 0; i < s->nkeeps; i++) all->list[all->count++] = s->keeps[i];
}

static drupe_status refuse(const drupe_submission *s, drupe_status status)
{
    for (size_t i = 0; s && i < s->nkeeps; i++)
        if (s->keeps[i].release) s->keeps[i].release(s->keeps[i].object);
    return status;
}

static drupe_status submit(const drupe_submission *s, const drupe_native_call *call, call_keeps *all,
                           drupe_event **event)
{
    DRUPE_TRY(drupe_native_begin(call->function));
    call_block *block = block_new(call);
    if (!block) {
        drupe_native_end(call->function->library);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a call of '%s'.", call->function->name);
    }
    gather(s, call, block, all);
    drupe_submission own = *s;
    own.keeps = all->list;
    own.nkeeps = all->count;
    own.brief = false;
    own.effects = &all->effects;
    if (!own.label) own.label = call->function->name;
    const drupe_status status = drupe_submit_host(&own, block_run, block, event);
    all->count = 0; /* taken */
    return status;
}

drupe_status drupe_native_submit(const drupe_submission *s, const drupe_native_call *call,
                                 drupe_event **event)
{
    if (event) *event = NULL;
    drupe_status status = check(s, call);
    if (status != DRUPE_OK) return refuse(s, status);
    call_keeps all;
    const size_t room = call->count + s->nkeeps + 2;
    all.list = room <= KEEPS_FEW ? all.few : malloc(room * sizeof *all.list);
    if (!all.list)
        return refuse(
            s, drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a call of '%s'.", call->function->name));
    all.count = SIZE_MAX;
    status = submit(s, call, &all, event);
    if (all.list != all.few) free(all.list);
    return all.count == SIZE_MAX ? refuse(s, status) : status;
}
