/* What the environment says of expressions. */
#include "array/node.h"
#include <stdlib.h>
#include <string.h>

/* Elements below which an operation is submitted at once: measured, see docs/internals/recipes.md. */
#define ABOVE_HOST 32768

static fuse_settings settings;

static void read_settings(void)
{
    const char *fuse = getenv("DRUPE_FUSE"), *above = getenv("DRUPE_FUSE_ABOVE"),
               *most = getenv("DRUPE_FUSE_MOST"), *idle = getenv("DRUPE_FUSE_IDLE");
    settings.off = fuse && strcmp(fuse, "0") == 0;
    settings.steps = fuse && strcmp(fuse, "steps") == 0;
    settings.patient = idle && strcmp(idle, "0") == 0;
    settings.above = above ? (size_t)strtoull(above, NULL, 10) : ABOVE_HOST;
    settings.most = most ? (unsigned)strtoul(most, NULL, 10) : DRUPE_PENDING_MOST;
    if (settings.most < 1 || settings.most > DRUPE_PENDING_MOST) settings.most = DRUPE_PENDING_MOST;
}

const fuse_settings *drupe_fuse_settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_settings);
    return &settings;
}
