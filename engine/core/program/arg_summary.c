/* See arg_summary.h. The kernel's own declaration gives names and types to the bytes. */
#include "core/program/program_room.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- Taking --------------------------------------------------------------------------------------------- */

static void take_args(drupe_arg_summary *summary, const drupe_work *work)
{
    for (uint32_t i = 0; i < summary->nargs && i < DRUPE_ARG_SUMMARY_MOST; i++) {
        const drupe_arg *arg = &work->args[i];
        size_t size = arg->kind == DRUPE_ARG_POINTER ? sizeof(void *) : arg->size;
        summary->bits[i] = 0;
        summary->forms[i] = (drupe_form){(uint32_t)arg->kind, (uint32_t)size};
        if (arg->kind == DRUPE_ARG_LOCAL || !arg->value) continue;
        if (size == 8)
            memcpy(&summary->bits[i], arg->value, 8);
        else
            memcpy(&summary->bits[i], arg->value, size < 8 ? size : 8);
    }
}

static inline void take_kernel(drupe_arg_summary *summary, const drupe_work *work)
{
    summary->kernel = work->kernel;
    summary->nargs = work->args ? (uint32_t)work->nargs : 0;
    if (work->range && work->range->dims <= 3) {
        summary->dims = (uint8_t)work->range->dims;
        memcpy(summary->global, work->range->global, sizeof summary->global);
        memcpy(summary->local, work->range->local, sizeof summary->local);
    }
    summary->worded = work->words != NULL;
    if (!summary->worded) take_args(summary, work);
    for (uint32_t i = 0; summary->worded && i < summary->nargs; i++) summary->bits[i] = work->words[i];
}

void drupe_arg_summary_take(drupe_arg_summary *summary, const drupe_work *work)
{
    summary->kind = (uint8_t)work->kind;
    summary->dims = 0;
    summary->kernel = NULL;
    if (work->kind == DRUPE_WORK_KERNEL) {
        take_kernel(summary, work);
        return;
    }
    if (work->kind == DRUPE_WORK_BARRIER || work->kind == DRUPE_WORK_MARK || work->kind == DRUPE_WORK_HOST)
        return;
    summary->nargs = work->kind == DRUPE_WORK_COPY ? 2 : 1;
    summary->bytes = work->bytes;
    summary->pattern_size = work->pattern_size;
    summary->bits[0] = (uintptr_t)work->dst;
    summary->bits[1] = (uintptr_t)work->src;
}

/* --- Telling -------------------------------------------------------------------------------------------- */

static const drupe_memory *find_memory(uint64_t address, const drupe_keep *refs, size_t nrefs)
{
    for (size_t i = 0; i < nrefs; i++) {
        if (refs[i].release != drupe_uses_drop) continue;
        const drupe_memory *memory = refs[i].object;
        uint64_t start = (uintptr_t)drupe_memory_pointer(memory);
        if (address >= start && address - start < memory->size) return memory;
    }
    return NULL;
}

static void add_pointer(drupe_text *text, uint64_t address, const drupe_keep *refs, size_t nrefs)
{
    const drupe_memory *memory = find_memory(address, refs, nrefs);
    if (!address) {
        drupe_text_printf(text, "NULL");
    } else if (memory) {
        uint64_t offset = address - (uintptr_t)drupe_memory_pointer(memory);
        drupe_text_printf(text, "%s memory of %zu bytes", drupe_mem_kind_name(memory->pool->kind),
                          (size_t)memory->size);
        if (offset) drupe_text_printf(text, " + %" PRIu64, offset);
    } else {
        drupe_text_printf(text, "0x%" PRIx64 ", which is not USM", address);
    }
}

/* A number of a type that the compiler told. */
static bool add_scalar(drupe_text *text, uint64_t bits, drupe_scalar_type type)
{
    float f32;
    double f64;
    switch (type) {
    case DRUPE_SCALAR_I8: drupe_text_printf(text, "%d", (int8_t)bits); return true;
    case DRUPE_SCALAR_U8: drupe_text_printf(text, "%u", (uint8_t)bits); return true;
    case DRUPE_SCALAR_I16: drupe_text_printf(text, "%d", (int16_t)bits); return true;
    case DRUPE_SCALAR_U16: drupe_text_printf(text, "%u", (uint16_t)bits); return true;
    case DRUPE_SCALAR_I32: drupe_text_printf(text, "%" PRId32, (int32_t)bits); return true;
    case DRUPE_SCALAR_U32: drupe_text_printf(text, "%" PRIu32, (uint32_t)bits); return true;
    case DRUPE_SCALAR_I64: drupe_text_printf(text, "%" PRId64, (int64_t)bits); return true;
    case DRUPE_SCALAR_U64: drupe_text_printf(text, "%" PRIu64, bits); return true;
    case DRUPE_SCALAR_F32:
        memcpy(&f32, &bits, sizeof f32);
        drupe_text_printf(text, "%.9g", (double)f32);
        return true;
    case DRUPE_SCALAR_F64:
        memcpy(&f64, &bits, sizeof f64);
        drupe_text_printf(text, "%.17g", f64);
        return true;
    default: return false;
    }
}

/* What the compiler says of it, or NULL: what was refused may have no kernel, or too many arguments. */
static const drupe_arg_info *declared(const drupe_kernel *kernel, uint32_t index)
{
    return kernel && kernel->args && index < kernel->nargs ? &kernel->args[index] : NULL;
}

static void add_arg(drupe_text *text, const drupe_arg_summary *summary, const drupe_form *form,
                    uint32_t index, const drupe_keep *refs, size_t nrefs)
{
    const drupe_arg_info *info = declared(summary->kernel, index);
    uint64_t bits = summary->bits[index];
    if (info && info->name[0])
        drupe_text_printf(text, "%s = ", info->name);
    else
        drupe_text_printf(text, "argument %u = ", index);
    switch ((drupe_arg_kind)form->kind) {
    case DRUPE_ARG_POINTER: add_pointer(text, bits, refs, nrefs); return;
    case DRUPE_ARG_LOCAL: drupe_text_printf(text, "%u bytes of local memory", form->size); return;
    default: break;
    }
    bool scalar = info && info->lanes == 1 && !info->either_sign;
    if (scalar && add_scalar(text, bits, info->scalar)) return;
    if (form->size <= 8)
        drupe_text_printf(text, "0x%" PRIx64 " (%u bytes)", bits, form->size);
    else
        drupe_text_printf(text, "%u bytes", form->size);
}

/* Sizes that a kernel in Python is given beside its arguments are none of the user's. */
static bool hidden(const drupe_arg_summary *summary, uint32_t index)
{
    const drupe_arg_info *info = declared(summary->kernel, index);
    return info && strncmp(info->name, "drupe_", 6) == 0;
}

static void add_extent(drupe_text *text, const size_t *sizes, unsigned dims)
{
    for (unsigned d = 0; d < dims; d++) drupe_text_printf(text, "%s%zu", d ? " x " : "", sizes[d]);
}

static void add_kernel(drupe_text *text, const drupe_arg_summary *summary, const drupe_keep *refs,
                       size_t nrefs)
{
    const drupe_form *forms = summary->worded ? summary->kernel->forms : summary->forms;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < summary->nargs && i < DRUPE_ARG_SUMMARY_MOST; i++) {
        if (hidden(summary, i)) continue;
        if (shown++) drupe_text_printf(text, ", ");
        add_arg(text, summary, &forms[i], i, refs, nrefs);
    }
    if (summary->nargs > DRUPE_ARG_SUMMARY_MOST)
        drupe_text_printf(text, " and %u more", summary->nargs - DRUPE_ARG_SUMMARY_MOST);
    if (summary->nargs) drupe_text_printf(text, "; ");
    add_extent(text, summary->global, summary->dims);
    if (summary->dims) drupe_text_printf(text, " work-items");
    if (!summary->dims || !summary->local[0]) return;
    drupe_text_printf(text, " in groups of ");
    add_extent(text, summary->local, summary->dims);
}

static void add_summary(drupe_text *text, const drupe_arg_summary *summary, const drupe_keep *refs,
                        size_t nrefs)
{
    switch ((drupe_work_kind)summary->kind) {
    case DRUPE_WORK_KERNEL: add_kernel(text, summary, refs, nrefs); return;
    case DRUPE_WORK_COPY:
        drupe_text_printf(text, "%zu bytes from ", summary->bytes);
        add_pointer(text, summary->bits[1], refs, nrefs);
        drupe_text_printf(text, " to ");
        add_pointer(text, summary->bits[0], refs, nrefs);
        return;
    case DRUPE_WORK_FILL:
    case DRUPE_WORK_PREFETCH:
    case DRUPE_WORK_ADVISE:
        drupe_text_printf(text, "%zu bytes at ", summary->bytes);
        add_pointer(text, summary->bits[0], refs, nrefs);
        if (summary->kind == DRUPE_WORK_FILL)
            drupe_text_printf(text, ", with a pattern of %zu bytes", summary->pattern_size);
        return;
    default: return;
    }
}

void drupe_arg_summary_text(const drupe_arg_summary *summary, const drupe_keep *refs, size_t nrefs,
                            char *text, size_t size)
{
    drupe_text whole = {0};
    add_summary(&whole, summary, refs, nrefs);
    snprintf(text, size, "%s", drupe_text_get(&whole));
    if (whole.length >= size && size > 4) snprintf(text + size - 4, 4, "..."); /* seen to be cut */
    drupe_text_clear(&whole);
}
