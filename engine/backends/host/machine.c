/* The processor, from /proc and /sys. What cannot be read stays unknown; nothing here fails. */
#include "base/machine.h"
#include "backends/host/host.h"
#include "base/file.h"
#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "key   : value" lines: copies the first value of `key`. */
static bool take_value(const char *line, const char *key, char *value, size_t size)
{
    size_t length = strlen(key);
    if (*value || strncmp(line, key, length) != 0) return false;
    line += length;
    while (isspace((unsigned char)*line)) line++;
    if (*line != ':') return false;
    line++;
    while (isspace((unsigned char)*line)) line++;
    snprintf(value, size, "%.*s", (int)strcspn(line, "\n"), line);
    return true;
}

static void probe_processor(drupe_host_machine *machine)
{
    char line[4096], mhz[32] = "", implementer[32] = "";
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        take_value(line, "model name", machine->name, sizeof machine->name);
        take_value(line, "vendor_id", machine->vendor, sizeof machine->vendor);
        take_value(line, "cpu MHz", mhz, sizeof mhz);
        take_value(line, "CPU implementer", implementer, sizeof implementer);
    }
    if (file) fclose(file);
    machine->clock_mhz = (uint64_t)strtod(mhz, NULL);
    if (!*machine->vendor) {
        snprintf(machine->vendor, sizeof machine->vendor, "%s%s", *implementer ? "implementer " : "unknown",
                 implementer);
    }
    if (*machine->name) return;
#if defined(__aarch64__)
    snprintf(machine->name, sizeof machine->name, "AArch64 processor");
#else
    snprintf(machine->name, sizeof machine->name, "processor");
#endif
}

static char features[33];

static void read_features(void)
{
    char line[4096], value[4096] = "";
    drupe_hash hash = {0, 0};
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (take_value(line, "flags", value, sizeof value) ||
            take_value(line, "Features", value, sizeof value))
            break;
    }
    if (file) fclose(file);
    drupe_hash_add(&hash, value, strlen(value));
    snprintf(features, sizeof features, "%016" PRIx64 "%016" PRIx64, hash.a, hash.b);
}

const char *drupe_host_features(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_features);
    return features;
}

/* "32K", "8M" or plain bytes. */
static uint64_t parse_size(const char *text)
{
    char *end;
    uint64_t size = strtoull(text, &end, 10);
    if (*end == 'K') size <<= 10;
    if (*end == 'M') size <<= 20;
    if (*end == 'G') size <<= 30;
    return size;
}

static void probe_caches(drupe_host_machine *machine)
{
    unsigned long best = 0;
    for (int i = 0; i < 8; i++) {
        char path[96], line[64];
        int n = snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/", i);
        snprintf(path + n, sizeof path - (size_t)n, "level");
        if (!drupe_read_line(path, line, sizeof line)) break;
        unsigned long level = strtoul(line, NULL, 10);
        if (level < best) continue;
        snprintf(path + n, sizeof path - (size_t)n, "type");
        if (drupe_read_line(path, line, sizeof line) && strcmp(line, "Instruction") == 0) continue;
        best = level;
        snprintf(path + n, sizeof path - (size_t)n, "size");
        if (drupe_read_line(path, line, sizeof line)) machine->cache = parse_size(line);
        snprintf(path + n, sizeof path - (size_t)n, "coherency_line_size");
        if (drupe_read_line(path, line, sizeof line)) machine->line = parse_size(line);
    }
}

static unsigned wanted_threads(void)
{
    const char *wanted = getenv("DRUPE_HOST_THREADS");
    if (wanted && *wanted) {
        char *end;
        unsigned long threads = strtoul(wanted, &end, 10);
        if (!*end && threads >= 1 && threads <= DRUPE_HOST_MAX_WORKERS) return (unsigned)threads;
    }
    unsigned cpus = drupe_machine_cpus();
    return cpus < DRUPE_HOST_MAX_WORKERS ? cpus : DRUPE_HOST_MAX_WORKERS;
}

void drupe_host_machine_probe(drupe_host_machine *machine)
{
    char line[64];
    probe_processor(machine);
    probe_caches(machine);
    if (drupe_read_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", line, sizeof line)) {
        machine->clock_mhz = strtoull(line, NULL, 10) / 1000;
    }
    machine->corrects_errors = access("/sys/devices/system/edac/mc/mc0", F_OK) == 0;
    machine->threads = wanted_threads();
    machine->memory = drupe_machine_memory();
}
