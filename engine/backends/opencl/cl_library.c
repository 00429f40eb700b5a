/* The loader library and the list of root devices.
 *
 * Asking the loader for platforms makes it open every driver (tens of MiB, threads, signal handlers). Drivers
 * do not survive being unmapped, so the library is never closed once platforms were asked for; unload() only
 * drops the list. */
#include "opencl.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS 24
#define RETIRE_NS   UINT64_C(5000000000)

static const char install_advice[] = "install an OpenCL driver: for this processor \"apt-get install "
                                     "pocl-opencl-icd\" (Debian, Ubuntu), for a "
                                     "GPU the OpenCL package of its vendor";

/* Whether there is a file whose name matches. */
static bool any_file(const char *pattern)
{
    glob_t found;
    bool any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return any;
}

/* Whether a driver is registered with the loader. The variables are those of the two common loaders. */
static bool any_driver(void)
{
    const char *vendors = getenv("OCL_ICD_VENDORS");
    struct stat about;
    if (getenv("OCL_ICD_FILENAMES")) return true;
    if (!vendors) vendors = getenv("OPENCL_VENDOR_PATH");
    if (!vendors) vendors = "/etc/OpenCL/vendors";
    if (strpbrk(vendors, "*?[\\")) return true; /* no pattern of ours: the loader looks */
    if (stat(vendors, &about) == 0 && S_ISDIR(about.st_mode)) {
        char pattern[PATH_MAX];
        snprintf(pattern, sizeof pattern, "%s/*.icd", vendors);
        return any_file(pattern);
    }
    return getenv("OCL_ICD_VENDORS") != NULL; /* a single file, found by the loader's own rules */
}

/* Whether a GPU shows itself to programs. It is asked for with each array that is made without a word about
 * its device, and four looks into folders take 50 microseconds: what is found holds for a second. */
static bool any_gpu(void)
{
    enum { HOLDS_NS = 1000000000 };
    static _Atomic(uint64_t) none_until;
    const uint64_t now = drupe_now_ns();
    if (now < atomic_load_explicit(&none_until, memory_order_relaxed)) return false;
    if (any_file("/dev/dri/render*") || any_file("/dev/nvidia*") || any_file("/dev/kfd") ||
        any_file("/dev/dxg"))
        return true;
    atomic_store_explicit(&none_until, now + HOLDS_NS, memory_order_relaxed);
    return false;
}

bool drupe_cl_likely(drupe_device_type type)
{
    if (getenv(DRUPE_CL_LIBRARY_ENV)) return true;
    if (type == DRUPE_DEVICE_GPU && !any_gpu()) return false;
    return any_driver();
}

/* --- Root devices --------------------------------------------------------------------------------------- */

unsigned drupe_cl_version_of(const drupe_cl_api *api, cl_device_id id)
{
    /* "OpenCL 3.0 ..." */
    char text[256] = "";
    if (api->GetDeviceInfo(id, CL_DEVICE_VERSION, sizeof text, text, NULL) != CL_SUCCESS) return 0;
    text[sizeof text - 1] = '\0';
    unsigned major = 0, minor = 0;
    (void)sscanf(text, "OpenCL %2u.%1u", &major, &minor);
    return 10 * major + minor;
}

static bool usable(const drupe_cl_api *api, cl_device_id id)
{
    cl_bool available = CL_FALSE;
    api->GetDeviceInfo(id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    return available && drupe_cl_version_of(api, id) >= 12;
}

static drupe_status add_platform(drupe_cl_library *library, cl_platform_id platform)
{
    cl_uint count = 0;
    cl_int code = library->api.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (code != CL_SUCCESS || count == 0) return DRUPE_OK; /* a platform without devices is no error */
    cl_device_id *ids = calloc(count, sizeof(cl_device_id));
    drupe_cl_root *roots = realloc(library->roots, (library->count + count) * sizeof *roots);
    if (roots) library->roots = roots;
    if (!ids || !roots) {
        free(ids);
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of %u devices.", count);
    }
    cl_uint listed = 0;
    code = library->api.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, &listed);
    for (cl_uint i = 0; code == CL_SUCCESS && i < count && i < listed; i++) {
        if (usable(&library->api, ids[i])) roots[library->count++] = (drupe_cl_root){platform, ids[i]};
    }
    free(ids);
    return DRUPE_OK;
}

/* With more than one driver the loader may open all devices now, to sort the platforms by their number. */
static cl_int count_platforms(drupe_cl_library *library, cl_uint *count)
{
    drupe_threads *before = drupe_core_adoption_begin();
    cl_int code = library->api.GetPlatformIDs(0, NULL, count);
    drupe_core_adoption_end(before, library);
    return code;
}

static drupe_status list_roots(drupe_cl_library *library)
{
    cl_uint count = 0, listed = 0;
    cl_int code = count_platforms(library, &count);
    if (code != CL_SUCCESS || count == 0) {
        return drupe_cl_fail_as(DRUPE_E_UNAVAILABLE, code,
                                "OpenCL's loader is installed, but no driver is registered with it: %s.",
                                install_advice);
    }
    cl_platform_id *platforms = calloc(count, sizeof(cl_platform_id));
    if (!platforms) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of %u platforms.", count);
    code = library->api.GetPlatformIDs(count, platforms, &listed);
    drupe_status status = code == CL_SUCCESS ? DRUPE_OK : drupe_cl_fail(code, "Listing OpenCL's platforms");
    for (cl_uint i = 0; status == DRUPE_OK && i < count && i < listed; i++) {
        drupe_threads *before = drupe_core_adoption_begin();
        status = add_platform(library, platforms[i]);
        drupe_core_adoption_end(before, platforms[i]);
    }
    free(platforms);
    if (status == DRUPE_OK && library->count == 0) {
        status = drupe_cl_fail_as(
            DRUPE_E_UNAVAILABLE, CL_DEVICE_NOT_FOUND,
            "OpenCL has %u driver(s), but none of them offers a usable device (OpenCL 1.2 or "
            "later): %s.",
            count, install_advice);
    }
    return status;
}

/* Loader and drivers remember for good what they could not open: they are not asked as long as descriptors
 * are short. */
static drupe_status need_descriptors(void)
{
    int files[DESCRIPTORS], count = 0;
    while (count < DESCRIPTORS && (files[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) count++;
    bool short_of = count < DESCRIPTORS && (errno == EMFILE || errno == ENFILE);
    while (count) close(files[--count]);
    if (!short_of) return DRUPE_OK;
    return drupe_error_set(
        DRUPE_E_NO_MEMORY,
        "Opening OpenCL needs %d descriptors, and fewer are free: close files, or raise the "
        "limit (ulimit -n). OpenCL is tried again at its next use.",
        DESCRIPTORS);
}

drupe_status drupe_cl_load(void **state)
{
    static const drupe_dl_symbol symbols[] = {
#define DRUPE_CL_FN(name, optional) {"cl" #name, offsetof(drupe_cl_api, name), optional},
#include "functions.def"
#undef DRUPE_CL_FN
    };
    const char *chosen = getenv(DRUPE_CL_LIBRARY_ENV);
    const char *const names[] = {chosen && *chosen ? chosen : "libOpenCL.so.1", NULL};
    *state = NULL;
    DRUPE_TRY(need_descriptors());
    drupe_cl_library *library = calloc(1, sizeof *library);
    if (!library) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for the OpenCL library's table.");
    drupe_signals_save();
    drupe_status status = drupe_dl_open(names, install_advice, symbols, DRUPE_COUNT_OF(symbols),
                                        &library->api, &library->handle);
    if (status == DRUPE_OK) status = list_roots(library);
    drupe_signals_restore();
    if (status != DRUPE_OK) {
        drupe_cl_unload(library);
        library = NULL;
    }
    *state = library;
    return status;
}

void drupe_cl_unload(void *state)
{
    drupe_cl_library *library = state;
    if (!library) return;
    if (!drupe_cl_retire_wait(RETIRE_NS)) return; /* a thread still uses it, for good */
    free(library->roots);
    free(library);
}

drupe_status drupe_cl_device_count(void *state, uint32_t *count)
{
    *count = ((const drupe_cl_library *)state)->count;
    return DRUPE_OK;
}
