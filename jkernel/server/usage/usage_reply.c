/* usage_reply. A percentage needs two looks; the earlier one is kept here, and a look that comes too soon
 * after it gets the same answer again, so that several clients do not spoil each other's. */
#include "base/base.h"
#include "jkernel/server/usage/usage_room.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOON (200 * JK_MILLISECOND)

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

/* --- The reply -------------------------------------------------------------------------------------------
 */

static double tenths(double value)
{
    return (double)(long long)(value * 10 + 0.5) / 10;
}

static json_t *memory_pack(const jk_memory *memory)
{
    double used = percent((double)memory->total - (double)memory->available, (double)memory->total);
    return json_pack("{s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "total", (json_int_t)memory->total,
                     "available", (json_int_t)memory->available, "percent", tenths(used), "used",
                     (json_int_t)memory->used, "free", (json_int_t)memory->free, "active",
                     (json_int_t)memory->active, "inactive", (json_int_t)memory->inactive, "cached",
                     (json_int_t)memory->cached, "shared", (json_int_t)memory->shared, "wired",
                     (json_int_t)memory->wired);
}

char *jk_usage_reply(jk_usage *usage, const char *devices, size_t size)
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
    if (!drupe_utf8_valid(host, strlen(host))) host[0] = '\0';
    json_t *reply = json_pack("{s:s, s:s, s:i, s:f, s:I, s:i, s:o}", "status", "ok", "hostname", host, "pid",
                              (int)getpid(), "kernel_cpu", tenths(usage->own_percent), "kernel_memory",
                              (json_int_t)usage->tree.memory, "cpu_count", (int)drupe_cpus_within(quota),
                              "host_virtual_memory", memory_pack(&memory));
    /* The first look knows nothing yet, and clients take a missing value better than a wrong one. */
    if (usage->machine_percent > 0)
        json_object_set_new(reply, "host_cpu_percent", json_real(tenths(usage->machine_percent)));
    pthread_mutex_unlock(&usage->lock);
    json_t *list = json_loadb(devices, size, 0, NULL);
    json_object_set_new(reply, "devices", json_is_array(list) ? json_incref(list) : json_array());
    char *text = json_dumps(reply, JSON_COMPACT | JSON_REAL_PRECISION(8));
    json_decref(list);
    json_decref(reply);
    return text;
}
