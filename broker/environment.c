/* The variables of a lease: masks that make its devices visible, and only these. They are advice to a willing
 * program; what enforces is the administrator's (docs/security.md). */
#include "broker/broker_state.h"
#include <string.h>

static void value_add(json_t *lists, const char *name, json_t *value)
{
    json_t *list = json_object_get(lists, name), *old;
    size_t i;
    if (!list) {
        list = json_array();
        if (!list || json_object_set_new(lists, name, list) != 0) return;
    }
    json_array_foreach(list, i, old)
    {
        if (json_equal(old, value)) return;
    }
    json_array_append(list, value);
}

#define COUNT "{parts}"

/* A variable's value: {parts} in it is the number of parts that were taken, for instance of a processor's
 * threads. */
static void counted_add(json_t *lists, const char *name, json_t *value, const bk_take *take)
{
    const char *text = json_string_value(value), *at = strstr(text, COUNT);
    if (!at) {
        value_add(lists, name, value);
        return;
    }
    unsigned count = take->nparts ? take->nparts : take->device->parts;
    json_t *made = json_sprintf("%.*s%u%s", (int)(at - text), text, count, at + strlen(COUNT));
    if (made) value_add(lists, name, made);
    json_decref(made);
}

static void take_add(json_t *lists, const bk_take *take)
{
    const bk_device *device = take->device;
    const char *name;
    json_t *value;
    bool whole = take->nparts == 0 || take->nparts == device->parts || !device->part_env;
    json_object_foreach(device->env, name, value)
    {
        /* What the parts set instead. */
        if (!whole && json_object_get(json_array_get(device->part_env, 0), name)) continue;
        counted_add(lists, name, value, take);
    }
    for (unsigned i = 0; !whole && i < device->parts; i++) {
        if (!bk_has_part(&take->parts, i)) continue;
        json_object_foreach(json_array_get(device->part_env, i), name, value)
        {
            counted_add(lists, name, value, take);
        }
    }
}

/* What separates the values of a variable when several devices or parts set it. */
static const char *separator(const bk_broker *broker, const char *name)
{
    const char *own = json_string_value(json_object_get(broker->config.join, name));
    if (own) return own;
    return strcmp(name, "DRUPE_DEVICES") == 0 || strcmp(name, "ONEAPI_DEVICE_SELECTOR") == 0 ? ";" : ",";
}

json_t *bk_environment(const bk_broker *broker, const bk_holding *holding, const char *lease)
{
    json_t *lists = json_object(), *env = json_object(), *list, *value;
    const char *name;
    for (unsigned i = 0; i < holding->ntakes; i++) take_add(lists, &holding->takes[i]);
    json_object_foreach(lists, name, list)
    {
        if (json_array_size(list) == 1) {
            json_object_set(env, name, json_array_get(list, 0));
            continue;
        }
        drupe_text text = {0};
        size_t i;
        json_array_foreach(list, i, value)
        {
            drupe_text_printf(&text, "%s%s", i ? separator(broker, name) : "", json_string_value(value));
        }
        bk_set(env, name, json_string(drupe_text_get(&text)));
        drupe_text_clear(&text);
    }
    json_decref(lists);
    if (holding->limited)
        bk_set(env, "DRUPE_MEMORY_LIMIT", json_sprintf("%llu", (unsigned long long)holding->limit));
    bk_set(env, "DRUPE_LEASE", json_string(lease));
    return env;
}
