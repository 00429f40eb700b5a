/* Functions: a symbol, and how it is called. */
#include "native/native_room.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static ffi_type *scalar_type(drupe_dtype dtype)
{
    switch (dtype) {
    case DRUPE_BOOL:
    case DRUPE_UINT8: return &ffi_type_uint8;
    case DRUPE_INT8: return &ffi_type_sint8;
    case DRUPE_INT16: return &ffi_type_sint16;
    case DRUPE_UINT16: return &ffi_type_uint16;
    case DRUPE_INT32: return &ffi_type_sint32;
    case DRUPE_UINT32: return &ffi_type_uint32;
    case DRUPE_INT64: return &ffi_type_sint64;
    case DRUPE_UINT64: return &ffi_type_uint64;
    case DRUPE_FLOAT32: return &ffi_type_float;
    case DRUPE_FLOAT64: return &ffi_type_double;
#ifdef FFI_TARGET_HAS_COMPLEX_TYPE
    case DRUPE_COMPLEX64: return &ffi_type_complex_float;
    case DRUPE_COMPLEX128: return &ffi_type_complex_double;
#endif
    default: return NULL;
    }
}

/* --- Without a signature ------------------------------------------------------------------------------- */

static struct {
    pthread_once_t once;
    ffi_type *types[DRUPE_NATIVE_PLAIN];
    ffi_cif cifs[DRUPE_NATIVE_PLAIN + 1]; /* by the number of arguments */
} plain = {.once = PTHREAD_ONCE_INIT};

static void plain_prepare(void)
{
    for (unsigned i = 0; i < DRUPE_NATIVE_PLAIN; i++) plain.types[i] = &ffi_type_pointer;
    for (unsigned n = 0; n <= DRUPE_NATIVE_PLAIN; n++)
        (void)ffi_prep_cif(&plain.cifs[n], FFI_DEFAULT_ABI, n, &ffi_type_void, plain.types);
}

ffi_cif *drupe_native_interface(drupe_native_function *function, size_t count)
{
    return function->declared ? &function->cif : &plain.cifs[count];
}

/* --- With one ------------------------------------------------------------------------------------------ */

static drupe_status take_param(drupe_native_function *function, size_t i, const drupe_native_param *param)
{
    function->pointers[i] = param->pointer;
    function->types[i] = param->pointer ? &ffi_type_pointer : scalar_type(param->dtype);
    if (function->types[i]) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNSUPPORTED,
                           "'%s': parameter %zu has a type that C functions do not take.", function->name,
                           i + 1);
}

static drupe_status declare(drupe_native_function *function, const drupe_native_signature *signature)
{
    ffi_type *result = &ffi_type_void;
    function->declared = true;
    function->count = signature->count;
    function->result = signature->result;
    for (size_t i = 0; i < signature->count; i++) DRUPE_TRY(take_param(function, i, &signature->params[i]));
    if (signature->result != DRUPE_DTYPE_NONE) result = scalar_type(signature->result);
    if (result && ffi_prep_cif(&function->cif, FFI_DEFAULT_ABI, (unsigned)signature->count, result,
                               function->types) == FFI_OK)
        return DRUPE_OK;
    return drupe_error_set(DRUPE_E_UNSUPPORTED,
                           "'%s': functions with this result or these parameters cannot be called.",
                           function->name);
}

static drupe_status find(drupe_native_function *function)
{
    drupe_native_library *library = function->library;
    pthread_mutex_lock(&library->lock);
    const bool closed = atomic_load(&library->closed);
    void *symbol = closed ? NULL : dlsym(library->handle, function->name);
    pthread_mutex_unlock(&library->lock);
    if (!symbol)
        return drupe_error_set(DRUPE_E_NOT_FOUND,
                               closed ? "The library %s was unloaded, '%s' with it."
                                      : "The library %s has no function '%s'.",
                               library->path, function->name);
    memcpy(&function->code, &symbol, sizeof symbol); /* C knows no conversion between the two */
    return DRUPE_OK;
}

drupe_status drupe_native_function_open(drupe_native_library *library, const char *name,
                                        const drupe_native_signature *signature,
                                        drupe_native_function **function)
{
    *function = NULL;
    if (!library || !name) return drupe_error_set(DRUPE_E_INVALID, "A function needs a library and a name.");
    if (signature && signature->count > DRUPE_NATIVE_MOST)
        return drupe_error_set(DRUPE_E_INVALID, "'%s' has %zu parameters; at most %u can be declared.", name,
                               signature->count, DRUPE_NATIVE_MOST);
    pthread_once(&plain.once, plain_prepare);
    const size_t length = strlen(name);
    drupe_native_function *fresh = calloc(1, sizeof *fresh + length + 1);
    if (!fresh) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the function '%s'.", name);
    atomic_init(&fresh->references, 1);
    memcpy(fresh->name, name, length + 1);
    fresh->result = DRUPE_DTYPE_NONE;
    fresh->library = drupe_native_retain(library);
    drupe_status status = find(fresh);
    if (status == DRUPE_OK && signature) status = declare(fresh, signature);
    if (status == DRUPE_OK)
        *function = fresh;
    else
        drupe_native_function_release(fresh);
    return status;
}

drupe_native_function *drupe_native_function_retain(drupe_native_function *function)
{
    if (function) atomic_fetch_add(&function->references, 1);
    return function;
}

static void release(drupe_native_function *function, void (*let_go)(drupe_native_library *library))
{
    if (!function || atomic_fetch_sub(&function->references, 1) != 1) return;
    let_go(function->library);
    free(function);
}

void drupe_native_function_release(drupe_native_function *function)
{
    release(function, drupe_native_release);
}

void drupe_native_function_leave(drupe_native_function *function)
{
    release(function, drupe_native_leave);
}

const char *drupe_native_function_name(const drupe_native_function *function)
{
    return function->name;
}
