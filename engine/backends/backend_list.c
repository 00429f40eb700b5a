/* The only file that names the backends. */
#include "backends/backend.h"

extern const drupe_backend drupe_backend_host;
extern const drupe_backend drupe_backend_opencl;

const drupe_backend *const drupe_backends[] = {&drupe_backend_host, &drupe_backend_opencl, NULL};
const char *const drupe_backends_absent[] = {"level_zero", "cuda", "hip", NULL};
