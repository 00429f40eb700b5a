/* Frames of views that were made up: what sanitizers of notebooks and terminals ask of them. With
 * DRUPE_TEST_FRAMES naming a folder, the pictures are also written there, to be looked at. */
#include "made.h"
#include "view/frame.h"
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const drupe_frame_kind kinds[] = {DRUPE_FRAME_EVENTS, DRUPE_FRAME_TABLE, DRUPE_FRAME_MEMORY,
                                         DRUPE_FRAME_DASHBOARD, DRUPE_FRAME_FOOTER};
static const char *const names[] = {"events", "table", "memory", "dashboard", "footer"};

static void keep(const char *name, const char *form, const char *text)
{
    const char *folder = getenv("DRUPE_TEST_FRAMES");
    char path[512];
    if (folder == NULL) return;
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, form);
    FILE *file = fopen(path, "w");
    if (file == NULL) return;
    fputs(text, file);
    fclose(file);
}

static void plain_frames(void **state)
{
    (void)state;
    made_view *made = made_plain();
    for (size_t i = 0; i < DRUPE_COUNT_OF(kinds); i++) {
        drupe_frame_style style = {.cell = 4};
        char *text = NULL, *html = NULL;
        size_t size = 0;
        assert_int_equal(drupe_frame_text(&made->view, kinds[i], &style, &text, &size), DRUPE_OK);
        assert_int_equal(strlen(text), size);
        assert_int_equal(drupe_frame_html(&made->view, kinds[i], &style, &html, &size), DRUPE_OK);
        assert_int_equal(strlen(html), size);
        keep(names[i], "txt", text);
        keep(names[i], "html", html);
        free(text);
        free(html);
    }
    made_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
