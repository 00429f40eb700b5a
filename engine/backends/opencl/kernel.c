/* Kernels: everything a launch needs to know is asked once, when the kernel is opened. */
#include "opencl.h"
#include <stdlib.h>
#include <string.h>

/* --- Types as compilers write them ---------------------------------------------------------------------- */

typedef struct type_name {
    const char *name;
    drupe_scalar_type scalar;
} type_name;

/* size_t and its like are 64 bits wide on every device with pointers that the engine can use. */
static const type_name type_names[] = {
    {"char", DRUPE_SCALAR_I8},          {"uchar", DRUPE_SCALAR_U8},
    {"unsigned char", DRUPE_SCALAR_U8}, {"short", DRUPE_SCALAR_I16},
    {"ushort", DRUPE_SCALAR_U16},       {"unsigned short", DRUPE_SCALAR_U16},
    {"int", DRUPE_SCALAR_I32},          {"uint", DRUPE_SCALAR_U32},
    {"unsigned int", DRUPE_SCALAR_U32}, {"unsigned", DRUPE_SCALAR_U32},
    {"long", DRUPE_SCALAR_I64},         {"ulong", DRUPE_SCALAR_U64},
    {"long long", DRUPE_SCALAR_I64},    {"unsigned long", DRUPE_SCALAR_U64},
    {"size_t", DRUPE_SCALAR_U64},       {"ptrdiff_t", DRUPE_SCALAR_I64},
    {"uintptr_t", DRUPE_SCALAR_U64},    {"intptr_t", DRUPE_SCALAR_I64},
    {"half", DRUPE_SCALAR_F16},         {"float", DRUPE_SCALAR_F32},
    {"double", DRUPE_SCALAR_F64},
};

static const char *skip_words(const char *text)
{
    static const char *const words[] = {"const ",      "volatile ", "restrict ", "global ",
                                        "__global ",   "local ",    "__local ",  "constant ",
                                        "__constant ", "private ",  "__private "};
    for (size_t i = 0; i < DRUPE_COUNT_OF(words); i++) {
        size_t length = strlen(words[i]);
        if (strncmp(text, words[i], length) == 0) return skip_words(text + length);
    }
    return text;
}

void drupe_cl_parse_type(const char *text, drupe_scalar_type *scalar, uint32_t *lanes)
{
    *scalar = DRUPE_SCALAR_UNKNOWN;
    *lanes = 1;
    text = skip_words(text);
    size_t length = strcspn(text, "*");
    if (text[length] == '*' && text[length + 1] == '*') return; /* a pointer to a pointer */
    while (length > 0 && text[length - 1] == ' ') length--;
    size_t digits = 0;
    while (digits < length && text[length - digits - 1] >= '0' && text[length - digits - 1] <= '9') digits++;
    unsigned long width = digits ? strtoul(text + length - digits, NULL, 10) : 1;
    bool known = !digits || width == 2 || width == 3 || width == 4 || width == 8 || width == 16;
    for (size_t i = 0; known && i < DRUPE_COUNT_OF(type_names); i++) {
        const char *name = type_names[i].name;
        if (strlen(name) != length - digits || strncmp(name, text, length - digits) != 0) continue;
        *scalar = type_names[i].scalar;
        *lanes = (uint32_t)width;
    }
}

/* --- Arguments ------------------------------------------------------------------------------------------ */

/* Another time there may be an answer. */
static bool is_transient(cl_int code)
{
    return code == CL_OUT_OF_HOST_MEMORY || code == CL_OUT_OF_RESOURCES;
}

/* A text property cut to fit; "" with the driver's code where it tells none. */
static cl_int arg_text(const drupe_cl_kernel *kernel, cl_uint index, cl_kernel_arg_info key, char *out,
                       size_t capacity)
{
    char text[1024] = "";
    out[0] = '\0';
    cl_int code = kernel->api->GetKernelArgInfo(kernel->id, index, key, sizeof text, text, NULL);
    if (code != CL_SUCCESS) return code;
    size_t length = strnlen(text, capacity - 1);
    memcpy(out, text, length);
    out[length] = '\0';
    return CL_SUCCESS;
}

static bool is_const(const drupe_cl_kernel *kernel, cl_uint index)
{
    cl_kernel_arg_type_qualifier how = 0;
    return kernel->api->GetKernelArgInfo(kernel->id, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof how, &how,
                                         NULL) == CL_SUCCESS &&
           how & CL_KERNEL_ARG_TYPE_CONST;
}

drupe_status drupe_cl_kernel_arg(drupe_kernel *kernel, size_t index, drupe_arg_info *info)
{
    const drupe_cl_kernel *native = drupe_native(kernel);
    const cl_uint at = (cl_uint)index;
    cl_kernel_arg_address_qualifier where = 0;
    *info = (drupe_arg_info){.lanes = 1};
    if (native->builtin)
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "Built-in kernels do not report their arguments.");
    cl_int code = native->api->GetKernelArgInfo(native->id, at, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where,
                                                &where, NULL);
    if (code != CL_SUCCESS && !is_transient(code)) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "The OpenCL driver reports nothing about a kernel's arguments.");
    }
    info->kind = where == CL_KERNEL_ARG_ADDRESS_PRIVATE ? DRUPE_ARG_VALUE
                 : where == CL_KERNEL_ARG_ADDRESS_LOCAL ? DRUPE_ARG_LOCAL
                                                        : DRUPE_ARG_POINTER;
    if (!is_transient(code)) code = arg_text(native, at, CL_KERNEL_ARG_NAME, info->name, sizeof info->name);
    if (!is_transient(code))
        code = arg_text(native, at, CL_KERNEL_ARG_TYPE_NAME, info->type_name, sizeof info->type_name);
    if (is_transient(code)) {
        return drupe_cl_fail_as(DRUPE_E_NO_MEMORY, code,
                                "The OpenCL driver has no memory to report a kernel's arguments (%d).",
                                (int)code);
    }
    drupe_cl_parse_type(info->type_name, &info->scalar, &info->lanes);
    info->reads_only =
        info->kind == DRUPE_ARG_POINTER && (where == CL_KERNEL_ARG_ADDRESS_CONSTANT || is_const(native, at));
    return DRUPE_OK;
}

static drupe_status resolve_args(drupe_cl_kernel *kernel)
{
    cl_int code = kernel->api->GetKernelInfo(kernel->id, CL_KERNEL_NUM_ARGS, sizeof kernel->nargs,
                                             &kernel->nargs, NULL);
    if (code != CL_SUCCESS) return drupe_cl_fail(code, "Asking for a kernel's number of arguments");
    kernel->params = calloc(kernel->nargs ? kernel->nargs : 1, sizeof *kernel->params);
    if (!kernel->params) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a kernel's arguments.");
    return DRUPE_OK;
}

/* --- Limits --------------------------------------------------------------------------------------------- */

static void ask_group(const drupe_cl_kernel *kernel, cl_kernel_work_group_info key, void *value, size_t size)
{
    memset(value, 0, size);
    if (kernel->api->GetKernelWorkGroupInfo(kernel->id, kernel->device->id, key, size, value, NULL) !=
        CL_SUCCESS) {
        memset(value, 0, size);
    }
}

static void resolve_limits(drupe_cl_kernel *kernel)
{
    const drupe_cl_caps *caps = &kernel->device->caps;
    ask_group(kernel, CL_KERNEL_WORK_GROUP_SIZE, &kernel->max_group, sizeof kernel->max_group);
    ask_group(kernel, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, &kernel->multiple,
              sizeof kernel->multiple);
    ask_group(kernel, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, kernel->required, sizeof kernel->required);
    ask_group(kernel, CL_KERNEL_LOCAL_MEM_SIZE, &kernel->local_bytes, sizeof kernel->local_bytes);
    ask_group(kernel, CL_KERNEL_PRIVATE_MEM_SIZE, &kernel->private_bytes, sizeof kernel->private_bytes);
    if (kernel->max_group == 0) kernel->max_group = caps->max_group;
    if (kernel->multiple == 0) kernel->multiple = caps->group_multiple ? caps->group_multiple : 1;
}

/* Let the kernel reach allocations through pointers that it finds in memory. */
static void allow_indirect(const drupe_cl_kernel *kernel, const drupe_cl_context *context)
{
    static const cl_kernel_exec_info keys[] = {CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL,
                                               CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                                               CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL};
    cl_bool yes = CL_TRUE;
    if (context->tier != DRUPE_CL_TIER_INTEL || kernel->device->caps.version < 20) return;
    for (size_t i = 0; kernel->api->SetKernelExecInfo && i < DRUPE_COUNT_OF(keys); i++) {
        kernel->api->SetKernelExecInfo(kernel->id, keys[i], sizeof yes, &yes); /* a refusal costs nothing */
    }
}

/* --- Entries -------------------------------------------------------------------------------------------- */

drupe_status drupe_cl_kernel_open(drupe_kernel *kernel, const char *name)
{
    drupe_cl_kernel *native = drupe_native(kernel);
    drupe_program *program = drupe_kernel_program(kernel);
    const drupe_cl_program *owner = drupe_native(program);
    native->api = owner->api;
    native->device = owner->device;
    native->inlines = owner->inlines;
    if (owner->builtin) return drupe_cl_builtin_open(native, name);
    cl_int code = CL_SUCCESS;
    drupe_signals_save();
    native->id = native->api->CreateKernel(owner->id, name, &code);
    drupe_signals_restore();
    if (code != CL_SUCCESS) native->id = NULL;
    native->launched_id = native->id;
    if (code != CL_SUCCESS) return drupe_cl_fail(code, "Opening the kernel \"%s\"", name);
    DRUPE_TRY(resolve_args(native));
    resolve_limits(native);
    allow_indirect(native, drupe_native(drupe_program_context(program)));
    return DRUPE_OK;
}

drupe_status drupe_cl_kernel_renew(drupe_kernel *kernel, const drupe_arg *args, size_t nargs)
{
    drupe_cl_kernel *native = drupe_native(kernel);
    const drupe_cl_program *program = drupe_native(drupe_kernel_program(kernel));
    bool stuck = false;
    for (size_t i = 0; i < nargs; i++) {
        bool null = args[i].kind == DRUPE_ARG_POINTER && !*(void *const *)args[i].value;
        stuck = stuck || (null && native->params[i].pointed);
    }
    if (!stuck) return DRUPE_OK;
    cl_int code = CL_SUCCESS;
    cl_kernel fresh = native->api->CreateKernel(program->id, drupe_kernel_name(kernel), &code);
    if (code != CL_SUCCESS)
        return drupe_cl_fail(code, "Opening the kernel \"%s\" again", drupe_kernel_name(kernel));
    if (native->launched_id != native->id) native->api->ReleaseKernel(native->launched_id);
    native->launched_id = fresh; /* what was launched keeps the other one */
    memset(native->params, 0, native->nargs * sizeof *native->params);
    return DRUPE_OK;
}

void drupe_cl_kernel_close(drupe_kernel *kernel)
{
    drupe_cl_kernel *native = drupe_native(kernel);
    if (native->launched_id != native->id) native->api->ReleaseKernel(native->launched_id);
    if (native->id) native->api->ReleaseKernel(native->id);
    native->id = native->launched_id = NULL;
    free(native->params);
    native->params = NULL;
}

/* A number about sub-groups, which OpenCL 2.1 brought; asked for when somebody wants it. */
static drupe_status sub_groups(const drupe_cl_kernel *kernel, cl_kernel_sub_group_info key, uint64_t *value)
{
    size_t answer = 0;
    const size_t group[3] = {kernel->max_group, 1, 1};
    bool asks_group = key == CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE;
    cl_int code = CL_INVALID_OPERATION;
    if (kernel->id && kernel->device->caps.version >= 21 && kernel->api->GetKernelSubGroupInfo) {
        code = kernel->api->GetKernelSubGroupInfo(kernel->id, kernel->device->id, key,
                                                  asks_group ? sizeof group : 0, asks_group ? group : NULL,
                                                  sizeof answer, &answer, NULL);
    }
    if (code != CL_SUCCESS) {
        return drupe_cl_fail_as(DRUPE_E_UNSUPPORTED, code,
                                "This OpenCL driver does not report anything about sub-groups.");
    }
    *value = answer;
    return DRUPE_OK;
}

drupe_status drupe_cl_kernel_number(drupe_kernel *kernel, drupe_kernel_key key, uint64_t *value)
{
    const drupe_cl_kernel *native = drupe_native(kernel);
    switch (key) {
    case DRUPE_KERNEL_ARG_COUNT: *value = native->nargs; return DRUPE_OK;
    case DRUPE_KERNEL_WORK_GROUP_SIZE: *value = native->max_group; return DRUPE_OK;
    case DRUPE_KERNEL_PREFERRED_MULTIPLE: *value = native->multiple; return DRUPE_OK;
    case DRUPE_KERNEL_PRIVATE_MEM_SIZE: *value = native->private_bytes; return DRUPE_OK;
    case DRUPE_KERNEL_LOCAL_MEM_SIZE: *value = native->local_bytes; return DRUPE_OK;
    case DRUPE_KERNEL_MAX_NUM_SUB_GROUPS: return sub_groups(native, CL_KERNEL_MAX_NUM_SUB_GROUPS, value);
    case DRUPE_KERNEL_MAX_SUB_GROUP_SIZE:
        return sub_groups(native, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, value);
    case DRUPE_KERNEL_COMPILE_NUM_SUB_GROUPS:
        return sub_groups(native, CL_KERNEL_COMPILE_NUM_SUB_GROUPS, value);
    case DRUPE_KERNEL_COMPILE_SUB_GROUP_SIZE:
        return sub_groups(native, CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL, value);
    default: return drupe_error_set(DRUPE_E_UNSUPPORTED, "OpenCL does not know this property of a kernel.");
    }
}
