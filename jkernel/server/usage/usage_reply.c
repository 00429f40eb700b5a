/* usage_reply. A percentage needs two looks; the earlier one is kept here, and a look that comes too soon
 * after it gets the same answer again, so that several clients do not spoil each other's. */
#include "base/base.h"
#include "jkernel/server/usage/usage_room.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOON (200 * JK_MILLISECOND)

struct jk_usage {
    pthread_mutex_t lock;
    drupe_groups group;
    bool found;
    int64_t taken;          /* when the samples were; 0: none yet */
    double busy, whole;     /* of the machine or group: time used, time there was */
    double own_percent;     /* of one CPU */
    double machine_percent; /* of all that may be used */
    jk_tree tree;
};

jk_usage *jk_usage_create(void)
{
    jk_usage *usage = calloc(1, sizeof *usage);
    if (usage && jk_mutex_open(&usage->lock) != 0) {
        free(usage);
        usage = NULL;
    }
    return usage;
}

void jk_usage_release(jk_usage *usage)
{
    if (!usage) return;
    pthread_mutex_destroy(&usage->lock);
    free(usage);
}

/* --- Samples
 * ------------------------------------------------------------------------------------------------
 */

/* CPU time of the whole machine, in seconds. */
static bool machine_read(double *busy, double *whole)
{
    char text[4096];
    unsigned long long user, nice, system, idle, waiting, irq, soft, stolen;
    if (drupe_proc_read("stat", text, sizeof text) <= 0 ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &waiting,
               &irq, &soft, &stolen) != 8) {
        return false;
    }
    *busy = (double)(user + nice + system + irq + soft + stolen);
    *whole = *busy + (double)(idle + waiting);
    return true;
}

static double percent(double part, double whole)
{
    return whole > 0 && part > 0 ? 100 * part / whole : 0;
}

static void sample(jk_usage *usage, double quota)
{
    int64_t now = jk_clock();
    if (usage->taken && now - usage->taken < SOON) return;
    double busy = jk_cgroup_cpu_time(&usage->group), whole = (double)now / JK_SECOND * quota;
    bool known = quota > 0 && busy >= 0;
    if (!known) known = machine_read(&busy, &whole);
    double before = usage->tree.cpu;
    jk_tree_read(&usage->tree);
    if (usage->taken) {
        usage->own_percent = percent(usage->tree.cpu - before, (double)(now - usage->taken) / JK_SECOND);
        usage->machine_percent = known ? percent(busy - usage->busy, whole - usage->whole) : 0;
        if (usage->machine_percent > 100) usage->machine_percent = 100;
    }
    usage->busy = busy;
    usage->whole = whole;
    usage->taken = now;
}

/* --- Text
 * ---------------------------------------------------------------------------------------------------
 */

static void number_write(jk_buffer *content, const char *name, double value)
{
    char text[80];
    /* Not with %g: the locale may have another decimal sign. */
    long long tenths = (long long)(value * 10 + 0.5);
    snprintf(text, sizeof text, ",\"%s\":%lld.%lld", name, tenths / 10, tenths % 10);
    jk_buffer_append_text(content, text);
}

static void size_write(jk_buffer *content, const char *name, uint64_t value)
{
    char text[80];
    snprintf(text, sizeof text, ",\"%s\":%" PRIu64, name, value);
    jk_buffer_append_text(content, text);
}

static void memory_write(const jk_memory *memory, jk_buffer *content)
{
    char text[80];
    snprintf(text, sizeof text, ",\"host_virtual_memory\":{\"total\":%" PRIu64, memory->total);
    jk_buffer_append_text(content, text);
    size_write(content, "available", memory->available);
    number_write(content, "percent",
                 percent((double)memory->total - (double)memory->available, (double)memory->total));
    size_write(content, "used", memory->used);
    size_write(content, "free", memory->free);
    size_write(content, "active", memory->active);
    size_write(content, "inactive", memory->inactive);
    size_write(content, "cached", memory->cached);
    size_write(content, "shared", memory->shared);
    size_write(content, "wired", memory->wired);
    jk_buffer_append(content, "}", 1);
}

static bool is_array(jk_slice text)
{
    const char *data = text.data;
    return text.size >= 2 && data[0] == '[' && data[text.size - 1] == ']' &&
           drupe_utf8_valid(data, text.size);
}

void jk_usage_write(jk_usage *usage, jk_slice devices, jk_buffer *content)
{
    char host[256] = "";
    jk_memory memory;
    pthread_mutex_lock(&usage->lock);
    if (!usage->found) drupe_groups_find(&usage->group);
    usage->found = true;
    double quota = drupe_group_cpus(&usage->group.cpu);
    sample(usage, quota);
    jk_memory_read(&usage->group.memory, &memory);
    gethostname(host, sizeof host - 1);
    jk_buffer_append_text(content, "\"hostname\":");
    jk_buffer_append_json(content, host, strlen(host));
    size_write(content, "pid", (uint64_t)getpid());
    number_write(content, "kernel_cpu", usage->own_percent);
    size_write(content, "kernel_memory", usage->tree.memory);
    size_write(content, "cpu_count", (uint64_t)(int)drupe_cpus_within(quota));
    /* The first look knows nothing yet, and clients take a missing value better than a wrong one. */
    if (usage->machine_percent > 0) number_write(content, "host_cpu_percent", usage->machine_percent);
    memory_write(&memory, content);
    pthread_mutex_unlock(&usage->lock);
    jk_buffer_append_text(content, ",\"devices\":");
    if (is_array(devices)) {
        jk_buffer_append(content, devices.data, devices.size);
    } else {
        jk_buffer_append_text(content, "[]");
    }
}
