/* The configuration: one JSON object. Every mistake is told with its place, a path such as devices[2].parts,
 * so that
 * --check can be run before a restart. An unknown key is a mistake: it is a misspelt one. */
#include "base/file.h"
#include "broker/broker_room.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MOST     ((size_t)4 << 20)
#define PROBLEMS_MOST 50
#define LIST_MOST     4096
#define PATH_MOST     200

typedef struct reader {
    bk_config *config;
    drupe_text *problems;
    unsigned count;
} reader;

static void wrong(reader *r, const char *place, const char *key, const char *what)
{
    if (r->count++ >= PROBLEMS_MOST) return;
    drupe_text_printf(r->problems, "%s%s%s: %s\n", place, *place && *key && *key != '[' ? "." : "", key,
                      what);
}

static const char *const kinds[BK_KINDS] = {"any", "cpu", "gpu", "accelerator"};

const char *bk_kind_name(bk_kind kind)
{
    return kinds[kind];
}

bool bk_kind_read(const char *name, bk_kind *kind)
{
    for (unsigned i = 0; i < BK_KINDS; i++) {
        if (strcmp(name, kinds[i]) != 0) continue;
        *kind = (bk_kind)i;
        return true;
    }
    return false;
}

const bk_profile *bk_profile_find(const bk_config *config, const char *name)
{
    for (size_t i = 0; i < config->nprofiles; i++) {
        if (strcmp(config->profiles[i].name, name) == 0) return &config->profiles[i];
    }
    return NULL;
}

/* --- Values --------------------------------------------------------------------------------------------- */

/* Keys of `object` that are not in the NULL-ended `known`; false when it is no object. */
static bool object_check(reader *r, json_t *object, const char *place, const char *const *known)
{
    if (!json_is_object(object)) {
        wrong(r, place, "", "an object is wanted here");
        return false;
    }
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0) i++;
        if (!known[i]) wrong(r, place, key, "there is no such key");
    }
    return true;
}

static char *text_of(reader *r, json_t *object, const char *place, const char *key, bool needed)
{
    json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) {
        if (needed) wrong(r, place, key, "this is missing");
        return NULL;
    }
    const char *text = json_string_value(value);
    if (!text || !*text || strlen(text) > PATH_MOST * 2) {
        wrong(r, place, key, "a text of 1 to 400 bytes is wanted here");
        return NULL;
    }
    return strdup(text);
}

/* A whole number from `least` to `most`; `otherwise` when it is missing. */
static uint64_t whole_of(reader *r, json_t *object, const char *place, const char *key, uint64_t least,
                         uint64_t most, uint64_t otherwise)
{
    json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) return otherwise;
    json_int_t number = json_integer_value(value);
    if (json_is_integer(value) && number >= 0 && (uint64_t)number >= least && (uint64_t)number <= most) {
        return (uint64_t)number;
    }
    char what[100];
    snprintf(what, sizeof what, "a whole number from %llu to %llu is wanted here", (unsigned long long)least,
             (unsigned long long)most);
    wrong(r, place, key, what);
    return otherwise;
}

static double number_of(reader *r, json_t *object, const char *place, const char *key, double otherwise)
{
    json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) return otherwise;
    double number = json_number_value(value);
    if (json_is_number(value) && number >= 0 && number <= 1e9) return number;
    wrong(r, place, key, "a number from 0 to 1e9 is wanted here");
    return otherwise;
}

static bool env_check(reader *r, json_t *env, const char *place, const char *key)
{
    bool good = json_is_object(env);
    const char *name;
    json_t *value;
    json_object_foreach(env, name, value)
    {
        if (!*name || strchr(name, '=') || !json_is_string(value)) good = false;
    }
    if (!good) wrong(r, place, key, "an object of variables is wanted here: a text for each name");
    return good;
}

/* An array for `size` things, or NULL. */
static void *array_of(reader *r, size_t count, size_t size, size_t most, const char *place)
{
    char what[80];
    if (count > most) {
        snprintf(what, sizeof what, "%zu are too many; %zu is the most", count, most);
        wrong(r, place, "", what);
        return NULL;
    }
    void *array = calloc(count ? count : 1, size);
    if (!array) wrong(r, place, "", "there is no memory for it");
    return array;
}

/* --- Devices -------------------------------------------------------------------------------------------- */

static void kind_of(reader *r, json_t *object, const char *place, bool any, bk_kind *kind)
{
    const char *name = json_string_value(json_object_get(object, "kind"));
    if (!name && any && !json_object_get(object, "kind")) return;
    if (!name || !bk_kind_read(name, kind) || (!any && *kind == BK_ANY)) {
        wrong(r, place, "kind", "cpu, gpu or accelerator is wanted here");
    }
}

static void part_env_of(reader *r, json_t *object, const char *place, bk_device *device)
{
    json_t *list = json_object_get(object, "part_env"), *one;
    size_t i;
    char key[32];
    if (!list) return;
    if (json_array_size(list) != device->parts) {
        wrong(r, place, "part_env", "a list with one object for each part is wanted here");
        return;
    }
    json_array_foreach(list, i, one)
    {
        snprintf(key, sizeof key, "part_env[%zu]", i);
        if (!env_check(r, one, place, key)) return;
    }
    device->part_env = json_incref(list);
}

static void device_of(reader *r, json_t *object, size_t index)
{
    static const char *const known[] = {"id",  "kind",     "name",  "parts", "memory",
                                        "env", "part_env", "nodes", NULL};
    bk_device *device = &r->config->devices[index];
    char place[32];
    snprintf(place, sizeof place, "devices[%zu]", index);
    device->parts = 1;
    if (!object_check(r, object, place, known)) return;
    device->id = text_of(r, object, place, "id", true);
    device->name = text_of(r, object, place, "name", false);
    if (!device->name && device->id) device->name = strdup(device->id);
    kind_of(r, object, place, false, &device->kind);
    device->parts = (unsigned)whole_of(r, object, place, "parts", 1, BK_PARTS_MOST, 1);
    device->memory = whole_of(r, object, place, "memory", 0, (uint64_t)1 << 53, 0);
    json_t *env = json_object_get(object, "env"), *nodes = json_object_get(object, "nodes"), *node;
    if (env && env_check(r, env, place, "env")) device->env = json_incref(env);
    part_env_of(r, object, place, device);
    size_t i;
    bool paths = !nodes || json_is_array(nodes);
    json_array_foreach(nodes, i, node)
    {
        if (!json_is_string(node)) paths = false;
    }
    if (!paths) wrong(r, place, "nodes", "a list of paths is wanted here");
    if (nodes && paths) device->nodes = json_incref(nodes);
    for (size_t other = 0; other < index && device->id; other++) {
        const char *id = r->config->devices[other].id;
        if (id && strcmp(id, device->id) == 0) wrong(r, place, "id", "another device has this id");
    }
}

static void devices_of(reader *r, json_t *list)
{
    size_t index;
    json_t *object;
    if (!json_is_array(list)) {
        wrong(r, "devices", "", "a list of devices is wanted here");
        return;
    }
    r->config->devices = array_of(r, json_array_size(list), sizeof(bk_device), BK_DEVICES_MOST, "devices");
    if (!r->config->devices) return;
    r->config->ndevices = json_array_size(list);
    json_array_foreach(list, index, object) device_of(r, object, index);
}

/* --- Profiles, quotas ----------------------------------------------------------------------------------- */

static void profiles_of(reader *r, json_t *map, double idle)
{
    static const char *const known[] = {"title",  "kind",    "devices", "parts",
                                        "memory", "seconds", "idle",    NULL};
    const char *name;
    json_t *object;
    if (!map) return;
    if (!json_is_object(map)) {
        wrong(r, "profiles", "", "an object is wanted here: name to profile");
        return;
    }
    r->config->profiles = array_of(r, json_object_size(map), sizeof(bk_profile), LIST_MOST, "profiles");
    if (!r->config->profiles) return;
    json_object_foreach(map, name, object)
    {
        bk_profile *profile = &r->config->profiles[r->config->nprofiles++];
        char place[PATH_MOST];
        snprintf(place, sizeof place, "profiles.%s", name);
        profile->name = strdup(name);
        if (!*name || strlen(name) > BK_NAME_MOST) wrong(r, place, "", "a name has 1 to 128 bytes");
        if (!object_check(r, object, place, known)) continue;
        profile->title = text_of(r, object, place, "title", false);
        kind_of(r, object, place, true, &profile->want.kind);
        profile->want.devices = (unsigned)whole_of(r, object, place, "devices", 1, BK_TAKES_MOST, 1);
        profile->want.parts = (unsigned)whole_of(r, object, place, "parts", 0, BK_PARTS_MOST, 0);
        profile->want.memory = whole_of(r, object, place, "memory", 0, (uint64_t)1 << 53, 0);
        profile->seconds = number_of(r, object, place, "seconds", 0);
        profile->idle = number_of(r, object, place, "idle", idle);
    }
}

static void quota_of(reader *r, json_t *object, const char *place, bk_quota *quota)
{
    static const char *const known[] = {"devices", "seconds", NULL};
    quota->devices = UINT64_MAX;
    if (!object_check(r, object, place, known)) return;
    if (!json_is_null(json_object_get(object, "devices")) && json_object_get(object, "devices")) {
        quota->devices = (uint64_t)llround(number_of(r, object, place, "devices", 0) * BK_UNIT);
    }
    quota->seconds = number_of(r, object, place, "seconds", 0);
}

static void user_quotas_of(reader *r, json_t *map)
{
    const char *name;
    json_t *object;
    if (!map) return;
    if (!json_is_object(map)) {
        wrong(r, "quotas.user", "", "an object is wanted here: name to quota");
        return;
    }
    r->config->users = array_of(r, json_object_size(map), sizeof(bk_quota), LIST_MOST, "quotas.user");
    if (!r->config->users) return;
    json_object_foreach(map, name, object)
    {
        bool all = strcmp(name, "*") == 0;
        bk_quota *quota = all ? &r->config->everyone : &r->config->users[r->config->nusers++];
        char place[PATH_MOST];
        snprintf(place, sizeof place, "quotas.user.%s", name);
        if (!all) quota->name = strdup(name);
        quota_of(r, object, place, quota);
    }
}

static void group_quotas_of(reader *r, json_t *map)
{
    const char *name;
    json_t *object;
    if (!map) return;
    if (!json_is_object(map)) {
        wrong(r, "quotas.group", "", "an object is wanted here: name to quota");
        return;
    }
    r->config->groups = array_of(r, json_object_size(map), sizeof(bk_quota), BK_GROUPS_MOST, "quotas.group");
    if (!r->config->groups) return;
    json_object_foreach(map, name, object)
    {
        bk_quota *quota = &r->config->groups[r->config->ngroups++];
        char place[PATH_MOST];
        snprintf(place, sizeof place, "quotas.group.%s", name);
        quota->name = strdup(name);
        quota_of(r, object, place, quota);
        const struct group *group = getgrnam(name);
        quota->exists = group != NULL;
        if (group) quota->gid = group->gr_gid;
        if (!group) wrong(r, place, "", "this machine has no such group");
    }
}

static void quotas_of(reader *r, json_t *object)
{
    static const char *const known[] = {"user", "group", NULL};
    r->config->everyone.devices = UINT64_MAX;
    if (!object || !object_check(r, object, "quotas", known)) return;
    user_quotas_of(r, json_object_get(object, "user"));
    group_quotas_of(r, json_object_get(object, "group"));
}

static void limits_of(reader *r, json_t *object)
{
    static const char *const known[] = {"connections", "connections_all", "leases",
                                        "tickets",     "subscriptions",   NULL};
    bk_limits *limits = &r->config->limits;
    if (object && !object_check(r, object, "limits", known)) object = NULL;
    limits->clients = (unsigned)whole_of(r, object, "limits", "connections", 1, 65536, 256);
    limits->clients_all = (unsigned)whole_of(r, object, "limits", "connections_all", 1, 1 << 20, 16384);
    limits->leases = (unsigned)whole_of(r, object, "limits", "leases", 1, 65536, 256);
    limits->tickets = (unsigned)whole_of(r, object, "limits", "tickets", 1, 65536, 64);
    limits->subscriptions = (unsigned)whole_of(r, object, "limits", "subscriptions", 1, 65536, 1024);
}

static void admins_of(reader *r, json_t *list)
{
    size_t index;
    json_t *name;
    size_t count = list ? json_array_size(list) : 1;
    r->config->admins = array_of(r, count, sizeof(char *), LIST_MOST, "admins");
    if (!r->config->admins) return;
    if (!list) {
        r->config->admins[r->config->nadmins++] = strdup("root");
        return;
    }
    if (!json_is_array(list)) wrong(r, "admins", "", "a list of names of users is wanted here");
    json_array_foreach(list, index, name)
    {
        char key[32];
        snprintf(key, sizeof key, "[%zu]", index);
        if (json_is_string(name))
            r->config->admins[r->config->nadmins++] = strdup(json_string_value(name));
        else
            wrong(r, "admins", key, "the name of a user is wanted here");
    }
}

/* --- The whole ------------------------------------------------------------------------------------------ */

static void root_of(reader *r, json_t *root)
{
    static const char *const known[] = {"devices",    "profiles", "quotas", "admins", "warning",
                                        "idle",       "patience", "state",  "socket", "limits",
                                        "accounting", "join",     NULL};
    bk_config *config = r->config;
    if (!object_check(r, root, "", known)) return;
    config->warning = number_of(r, root, "", "warning", 600);
    config->idle = number_of(r, root, "", "idle", 0);
    config->patience = number_of(r, root, "", "patience", 600);
    config->state = text_of(r, root, "", "state", false);
    config->socket = text_of(r, root, "", "socket", false);
    config->accounting = text_of(r, root, "", "accounting", false);
    devices_of(r, json_object_get(root, "devices"));
    profiles_of(r, json_object_get(root, "profiles"), config->idle);
    quotas_of(r, json_object_get(root, "quotas"));
    admins_of(r, json_object_get(root, "admins"));
    limits_of(r, json_object_get(root, "limits"));
    json_t *join = json_object_get(root, "join");
    if (join && env_check(r, join, "", "join")) config->join = json_incref(join);
}

bool bk_config_parse(const char *text, size_t size, bk_config *config, drupe_text *problems)
{
    reader r = {config, problems, 0};
    json_error_t error;
    *config = (bk_config){0};
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (root) {
        root_of(&r, root);
    } else {
        char place[64];
        snprintf(place, sizeof place, "line %d, column %d", error.line, error.column);
        wrong(&r, place, "", error.text);
    }
    json_decref(root);
    if (r.count > PROBLEMS_MOST) drupe_text_printf(problems, "and %u more\n", r.count - PROBLEMS_MOST);
    if (r.count) bk_config_clear(config);
    return r.count == 0;
}

bool bk_config_read(const char *path, bk_config *config, drupe_text *problems)
{
    *config = (bk_config){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : malloc(FILE_MOST + 1);
    long size = text ? drupe_read_most(fd, text, FILE_MOST + 1) : -1;
    int code = errno;
    if (fd >= 0) close(fd);
    bool good = false;
    if (size < 0) {
        drupe_text_printf(problems, "the file cannot be read: %s\n", strerror(code));
    } else if ((size_t)size > FILE_MOST) {
        drupe_text_printf(problems, "the file has more than %zu bytes\n", FILE_MOST);
    } else {
        good = bk_config_parse(text, (size_t)size, config, problems);
    }
    free(text);
    return good;
}

static void quotas_clear(bk_quota *quotas, size_t count)
{
    for (size_t i = 0; i < count; i++) free(quotas[i].name);
    free(quotas);
}

void bk_config_clear(bk_config *config)
{
    for (size_t i = 0; i < config->ndevices; i++) {
        bk_device *device = &config->devices[i];
        free(device->id);
        free(device->name);
        json_decref(device->env);
        json_decref(device->part_env);
        json_decref(device->nodes);
    }
    for (size_t i = 0; i < config->nprofiles; i++) {
        free(config->profiles[i].name);
        free(config->profiles[i].title);
    }
    for (size_t i = 0; i < config->nadmins; i++) free(config->admins[i]);
    quotas_clear(config->users, config->nusers);
    quotas_clear(config->groups, config->ngroups);
    free(config->devices);
    free(config->profiles);
    free(config->admins);
    free(config->state);
    free(config->socket);
    free(config->accounting);
    json_decref(config->join);
    *config = (bk_config){0};
}
