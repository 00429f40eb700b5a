/* Open addressing with linear probing and FNV-1a hashes, kept below three quarters full. Removal shifts the
 * following entries back instead of leaving marks, so lookups never slow down with age. */
#include "base/base.h"
#include <stdlib.h>
#include <string.h>

struct drupe_map_entry {
    uint64_t hash;
    void *key; /* malloc'ed copy, at least one byte */
    size_t size;
    void *value; /* NULL = free slot */
};

static uint64_t hash_bytes(const void *key, size_t size)
{
    const unsigned char *bytes = key;
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash ^ (hash >> 29);
}

/* The slot of the key, or the free slot where it belongs. The map has at least one free slot. */
static size_t find_slot(const drupe_map *map, uint64_t hash, const void *key, size_t size)
{
    size_t mask = map->capacity - 1, slot = (size_t)hash & mask;
    for (;; slot = (slot + 1) & mask) {
        const struct drupe_map_entry *entry = &map->entries[slot];
        if (!entry->value) return slot;
        if (entry->hash != hash || entry->size != size) continue;
        if (size == 0 || memcmp(entry->key, key, size) == 0) return slot;
    }
}

static drupe_status map_grow(drupe_map *map)
{
    drupe_map larger = {.count = map->count, .capacity = map->capacity ? map->capacity * 2 : 16};
    larger.entries = calloc(larger.capacity, sizeof *larger.entries);
    if (!larger.entries) {
        return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a map of %zu entries.", larger.capacity);
    }
    for (size_t i = 0; i < map->capacity; i++) {
        struct drupe_map_entry *entry = &map->entries[i];
        if (entry->value) larger.entries[find_slot(&larger, entry->hash, entry->key, entry->size)] = *entry;
    }
    free(map->entries);
    *map = larger;
    return DRUPE_OK;
}

void *drupe_map_get(const drupe_map *map, const void *key, size_t size)
{
    if (map->count == 0) return NULL;
    return map->entries[find_slot(map, hash_bytes(key, size), key, size)].value;
}

drupe_status drupe_map_put(drupe_map *map, const void *key, size_t size, void *value, void **old)
{
    if (old) *old = NULL;
    if ((map->count + 1) * 4 > map->capacity * 3) DRUPE_TRY(map_grow(map));
    uint64_t hash = hash_bytes(key, size);
    struct drupe_map_entry *entry = &map->entries[find_slot(map, hash, key, size)];
    if (entry->value) {
        if (old) *old = entry->value;
        entry->value = value;
        return DRUPE_OK;
    }
    void *copy = malloc(size ? size : 1);
    if (!copy) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a map key of %zu bytes.", size);
    if (size) memcpy(copy, key, size);
    *entry = (struct drupe_map_entry){.hash = hash, .key = copy, .size = size, .value = value};
    map->count++;
    return DRUPE_OK;
}

void *drupe_map_remove(drupe_map *map, const void *key, size_t size)
{
    if (map->count == 0) return NULL;
    size_t mask = map->capacity - 1, hole = find_slot(map, hash_bytes(key, size), key, size);
    void *value = map->entries[hole].value;
    if (!value) return NULL;
    free(map->entries[hole].key);
    for (size_t slot = (hole + 1) & mask; map->entries[slot].value; slot = (slot + 1) & mask) {
        size_t home = (size_t)map->entries[slot].hash & mask;
        if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
        map->entries[hole] = map->entries[slot];
        hole = slot;
    }
    map->entries[hole] = (struct drupe_map_entry){0};
    map->count--;
    return value;
}

void *drupe_map_next(const drupe_map *map, size_t *cursor, const void **key, size_t *size)
{
    while (*cursor < map->capacity) {
        const struct drupe_map_entry *entry = &map->entries[(*cursor)++];
        if (!entry->value) continue;
        if (key) *key = entry->key;
        if (size) *size = entry->size;
        return entry->value;
    }
    return NULL;
}

void drupe_map_clear(drupe_map *map)
{
    for (size_t i = 0; i < map->capacity; i++) free(map->entries[i].key);
    free(map->entries);
    *map = (drupe_map){0};
}
