/* The log of failures as JSON:
 *
 * {"errors": [{"id", "unix": ms since 1970, "cell": number, "place": "cell [7], line 3", "label", "device":
 *              filter, "queue": number, "name": of the status, "text", "arguments", "dependents": submissions
 *              that did not run because of it}, ...],    oldest first
 *  "latest": the id of the last one, to be sent back as `after`} */
#include "view/view_room.h"
#include <stdlib.h>
#include <string.h>

#define LOCATION_SIZE 96

static void put_text(drupe_text *text, const char *name, const char *value)
{
    drupe_text_append(text, name, strlen(name));
    drupe_json_string(text, value);
}

static void put_number(drupe_text *text, const char *name, uint64_t value)
{
    drupe_text_append(text, name, strlen(name));
    drupe_json_number(text, value);
}

static void put_note(drupe_text *text, const drupe_failure_note *note)
{
    const drupe_failure *failure = &note->failure;
    char location[LOCATION_SIZE];
    drupe_trace_place(failure->site, failure->cell_number, location, sizeof location);
    put_number(text, "{\"id\":", note->id);
    put_number(text, ",\"unix\":", note->unix_ns / 1000000);
    put_number(text, ",\"cell\":", failure->cell_number);
    put_text(text, ",\"place\":", location);
    put_text(text, ",\"label\":", failure->label);
    put_text(text, ",\"device\":", failure->device);
    put_number(text, ",\"queue\":", failure->queue);
    put_text(text, ",\"name\":", drupe_status_name(failure->error.status));
    put_text(text, ",\"text\":", failure->error.text);
    put_text(text, ",\"arguments\":", failure->arguments);
    put_number(text, ",\"dependents\":", note->dependents);
    drupe_text_append(text, "}", 1);
}

drupe_status drupe_frame_errors(uint64_t after, char **json, size_t *size)
{
    drupe_text text = {0};
    *json = NULL;
    drupe_failure_note *notes = malloc(DRUPE_FAILURE_NOTES * sizeof *notes);
    if (!notes) return drupe_error_set(DRUPE_E_NO_MEMORY, "No memory for a list of errors.");
    size_t count = drupe_failures_read(after, notes, DRUPE_FAILURE_NOTES);
    drupe_text_append(&text, "{\"errors\":[", 11);
    for (size_t i = 0; i < count; i++) {
        if (i) drupe_text_append(&text, ",", 1);
        put_note(&text, &notes[i]);
    }
    put_number(&text, "],\"latest\":", count ? notes[count - 1].id : after);
    drupe_text_append(&text, "}", 1);
    free(notes);
    drupe_status status = drupe_text_check(&text);
    *size = text.length;
    if (status == DRUPE_OK) *json = drupe_text_take(&text);
    drupe_text_clear(&text);
    return status;
}
