/* Bytes that know when they are damaged: the header says how long each part is and what all of it hashes to.
 * Made against accidents (a full disk, a bad one, a crash in the middle); against people there are the rights
 * of the folder. */
#include "core/program/program_room.h"
#include <stdlib.h>
#include <string.h>

#define ORDER  0x01020304u
#define FORMAT 2u

/* No padding: its bytes are hashed and stored as they are. */
typedef struct header {
    char magic[8];
    uint32_t order, format;
    uint32_t kind, zero;
    uint64_t sizes[DRUPE_RECORD_PARTS];
    uint64_t check[2];
} header;

static void header_fill(header *head, const drupe_record *record)
{
    *head = (header){.order = ORDER, .format = FORMAT, .kind = record->kind};
    memcpy(head->magic, DRUPE_RECORD_MAGIC, sizeof head->magic);
    for (size_t i = 0; i < DRUPE_RECORD_PARTS; i++) head->sizes[i] = record->parts[i].size;
}

static void header_check(const header *head, const drupe_record *record, uint64_t check[2])
{
    drupe_hash hash = {0, 0};
    drupe_hash_add(&hash, head, offsetof(header, check));
    for (size_t i = 0; i < DRUPE_RECORD_PARTS; i++)
        drupe_hash_add(&hash, record->parts[i].bytes, record->parts[i].size);
    check[0] = hash.a;
    check[1] = hash.b;
}

drupe_status drupe_record_pack(const drupe_record *record, void **bytes, size_t *size)
{
    header head;
    header_fill(&head, record);
    header_check(&head, record, head.check);
    size_t all = sizeof head;
    for (size_t i = 0; i < DRUPE_RECORD_PARTS; i++) all += record->parts[i].size;
    char *data = malloc(all);
    *bytes = NULL;
    *size = 0;
    if (!data) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a record of %zu bytes.", all);
    memcpy(data, &head, sizeof head);
    size_t at = sizeof head;
    for (size_t i = 0; i < DRUPE_RECORD_PARTS; i++) {
        if (record->parts[i].size) memcpy(data + at, record->parts[i].bytes, record->parts[i].size);
        at += record->parts[i].size;
    }
    *bytes = data;
    *size = all;
    return DRUPE_OK;
}

bool drupe_record_open(const void *bytes, size_t size, uint32_t kind, drupe_record *record)
{
    header head, expected;
    uint64_t check[2];
    *record = (drupe_record){.kind = kind};
    if (size < sizeof head) return false;
    memcpy(&head, bytes, sizeof head);
    size_t left = size - sizeof head;
    const char *at = (const char *)bytes + sizeof head;
    for (size_t i = 0; i < DRUPE_RECORD_PARTS; i++) {
        if (head.sizes[i] > left) return false;
        record->parts[i] = (drupe_span){at, (size_t)head.sizes[i]};
        at += head.sizes[i];
        left -= (size_t)head.sizes[i];
    }
    if (left) return false;
    header_fill(&expected, record);
    if (memcmp(&head, &expected, offsetof(header, check)) != 0) return false;
    header_check(&head, record, check);
    return memcmp(check, head.check, sizeof check) == 0;
}
