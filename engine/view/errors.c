/* The log of failures as JSON:
 *
 * {"errors": [{"id", "unix": ms since 1970, "cell": number, "place": "cell [7], line 3", "label", "device":
 *              filter, "queue": number, "name": of the status, "text", "arguments", "dependents": submissions
 *              that did not run because of it}, ...],    oldest first
 *  "latest": the id of the last one, to be sent back as `after`} */
#include "view/view_room.h"
#include <stdlib.h>

#define LOCATION_SIZE 96

static void put_note(drupe_text *text, const drupe_failure_note *note)
{
    const drupe_failure *failure = &note->failure;
    char location[LOCATION_SIZE];
    drupe_trace_place(failure->site, failure->cell_number, location, sizeof location);
    drupe_json_put_number(text, "{\"id\":", note->id);
    drupe_json_put_number(text, ",\"unix\":", note->unix_ns / 1000000);
    drupe_json_put_number(text, ",\"cell\":", failure->cell_number);
    drupe_json_put_text(text, ",\"place\":", location);
    drupe_json_put_text(text, ",\"label\":", failure->label);
    drupe_json_put_text(text, ",\"device\":", failure->device);
    drupe_json_put_number(text, ",\"queue\":", failure->queue);
    drupe_json_put_text(text, ",\"name\":", drupe_status_name(failure->error.status));
    drupe_json_put_text(text, ",\"text\":", failure->error.text);
    drupe_json_put_text(text, ",\"arguments\":", failure->arguments);
    drupe_json_put_number(text, ",\"dependents\":", note->dependents);
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
    drupe_json_put_number(&text, "],\"latest\":", count ? notes[count - 1].id : after);
    drupe_text_append(&text, "}", 1);
    free(notes);
    return drupe_view_give(&text, json, size);
}
