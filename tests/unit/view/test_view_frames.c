/* Frames of views that were made up: what sanitizers of notebooks and terminals ask of them. With
 * DRUPE_TEST_FRAMES naming a folder, the pictures are also written there, to be looked at. */
#include "made.h"
#include "rules.h"
#include "view/frame.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HTML_MOST (60u << 10)

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

/* Both forms, checked against the rules; the caller's. */
static char *text_of(const made_view *made, drupe_frame_kind kind, uint32_t columns, bool live)
{
    drupe_frame_style style = {.columns = columns, .live = live, .cell = 4};
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(drupe_frame_text(&made->view, kind, &style, &text, &size), DRUPE_OK);
    assert_true(size > 0 && strlen(text) == size && text[size - 1] != '\n');
    rules_text(text, columns == 0 ? 80 : columns < 60 ? 60 : columns);
    return text;
}

static char *html_of(const made_view *made, drupe_frame_kind kind, bool live)
{
    drupe_frame_style style = {.live = live, .cell = 4};
    char *html = NULL;
    size_t size = 0;
    assert_int_equal(drupe_frame_html(&made->view, kind, &style, &html, &size), DRUPE_OK);
    assert_int_equal(strlen(html), size);
    (void)rules_html(html, NULL, 0);
    return html;
}

static void plain_frames(void **state)
{
    (void)state;
    made_view *made = made_plain();
    for (size_t i = 0; i < DRUPE_COUNT_OF(kinds); i++) {
        char *text = text_of(made, kinds[i], 0, false), *html = html_of(made, kinds[i], false);
        keep(names[i], "txt", text);
        keep(names[i], "html", html);
        free(text);
        free(html);
    }
    made_free(made);
}

/* The first line has the number that matters. */
static void headlines(void **state)
{
    (void)state;
    made_view *made = made_plain();
    char *text = text_of(made, DRUPE_FRAME_EVENTS, 0, false),
         *html = html_of(made, DRUPE_FRAME_EVENTS, false);
    const char *line = "GPU busy 57 % of 1.70 s \u00b7 34 kernels \u00b7 512 MiB copied at 5.59 GB/s";
    assert_memory_equal(text, line, strlen(line));
    assert_non_null(strstr(html, line));
    free(text);
    free(html);
    text = text_of(made, DRUPE_FRAME_FOOTER, 100, false);
    assert_string_equal(text,
                        "590 ms wall \u00b7 GPU 370 ms busy (63 %) \u00b7 12 kernels \u00b7 peak 3.12 GiB of "
                        "15.0 GiB (+1.07 GiB kept)");
    free(text);
    made->devices[made->view.ndevices++] = made->devices[0]; /* the memory of two may be the same */
    text = text_of(made, DRUPE_FRAME_FOOTER, 100, false);
    assert_non_null(strstr(text, "peak 3.12 GiB (+1.07"));
    free(text);
    made_free(made);
}

/* One that will be replaced tells when it was made, in case it is not; a record is true at any time. */
static void live_frames_tell_their_time(void **state)
{
    (void)state;
    made_view *made = made_plain();
    for (int live = 0; live < 2; live++) {
        char *html = html_of(made, DRUPE_FRAME_DASHBOARD, live != 0);
        assert_int_equal(strstr(html, ":20</div>") != NULL, live); /* in whatever time zone */
        free(html);
    }
    made_free(made);
}

/* Work goes on after the code of its cell: shares are of the time until both are over. */
static void work_after_the_code(void **state)
{
    (void)state;
    made_view *made = made_plain();
    const drupe_view_span *first = &made->spans[0];
    made->spans[0].start_ns = made->view.now_ns - 1000000000;
    made->spans[0].end_ns = made->view.now_ns - 750000000;
    made->spans[0].busy_ns = 250000000;
    made->view.nspans = made->view.ncells = 1;
    made->cells[0] = (drupe_view_cell){.number = 4,
                                       .began_ns = first->start_ns - 50000000,
                                       .ended_ns = first->start_ns + 50000000,
                                       .first_ns = first->start_ns,
                                       .last_ns = first->end_ns,
                                       .busy_ns = 250000000,
                                       .count = {1}};
    char *text = text_of(made, DRUPE_FRAME_EVENTS, 0, false);
    const char *line = "GPU busy 83 % of 300 ms \u00b7 1 kernel";
    assert_memory_equal(text, line, strlen(line));
    free(text);
    text = text_of(made, DRUPE_FRAME_FOOTER, 100, false);
    line = "100 ms wall \u00b7 GPU 250 ms busy \u00b7 1 kernel";
    assert_memory_equal(text, line, strlen(line));
    free(text);
    made_free(made);
}

static void empty_views(void **state)
{
    (void)state;
    made_view *made = made_random(1, 1, 0);
    made->view.ndevices = made->view.ncells = made->view.nlanes = 0;
    for (size_t i = 0; i < DRUPE_COUNT_OF(kinds); i++) {
        char *text = text_of(made, kinds[i], 80, false), *html = html_of(made, kinds[i], true);
        assert_non_null(strstr(text, i == 2 ? "No device has been used" : "No device work"));
        free(text);
        free(html);
    }
    made_free(made);
}

/* As wide as the column at most: six. */
static void shares_fit(void **state)
{
    (void)state;
    assert_string_equal(drupe_frame_most_share(0.0, 0.0005).text, "<0.1 %");
    assert_string_equal(drupe_frame_most_share(0.9, 0.2).text, "\u2264100 %");
    assert_string_equal(drupe_frame_most_share(0.02, 0.0).text, "2.0 %");
}

static void any_views(void **state)
{
    (void)state;
    static const uint32_t columns[] = {0, 60, 80, 100, 37, 240};
    for (uint32_t seed = 1; seed <= 120; seed++) {
        made_view *made = made_random(seed, 1 + seed % 40, seed * 7 % 400);
        for (size_t i = 0; i < DRUPE_COUNT_OF(kinds); i++) {
            free(text_of(made, kinds[i], columns[seed % DRUPE_COUNT_OF(columns)], seed % 2));
            char *html = html_of(made, kinds[i], seed % 2);
            assert_true(strlen(html) <= HTML_MOST);
            free(html);
        }
        made_free(made);
    }
}

/* What a kernel is called cannot become a part of the page. */
static void labels_are_escaped(void **state)
{
    (void)state;
    made_view *made = made_plain();
    for (size_t i = 0; i < made->view.nspans; i++)
        snprintf(made->spans[i].label, sizeof made->spans[i].label, "<script>alert(\"%zu\")</script>'&",
                 i % 3);
    snprintf(made->devices[0].use.name, sizeof made->devices[0].use.name, "\"><img src=x>");
    char *html = html_of(made, DRUPE_FRAME_DASHBOARD, false);
    assert_null(strstr(html, "<script"));
    assert_null(strstr(html, "<img"));
    assert_non_null(strstr(html, "&lt;script&gt;alert(&quot;0&quot;)"));
    free(html);
    made_free(made);
}

/* However much there is to show. */
static void big_views_stay_small(void **state)
{
    (void)state;
    static const size_t lanes[] = {1, 3, 12, 64};
    for (size_t i = 0; i < DRUPE_COUNT_OF(lanes); i++) {
        made_view *made = made_random(77 + (uint32_t)i, lanes[i], DRUPE_VIEW_SPANS);
        for (size_t k = 0; k < DRUPE_COUNT_OF(kinds); k++) {
            char *html = html_of(made, kinds[k], k % 2);
            if (strlen(html) > HTML_MOST)
                fail_msg("%s of %zu lanes: %zu bytes", names[k], lanes[i], strlen(html));
            free(html);
        }
        made_free(made);
    }
}

/* Shares of the table add up, and its rows are in the order of their time. */
static void tables_add_up(void **state)
{
    (void)state;
    made_view *made = made_plain();
    drupe_frame_sums sums;
    assert_int_equal(drupe_frame_sums_make(&made->view, DRUPE_FRAME_TABLE, false, &sums), DRUPE_OK);
    uint64_t total = drupe_table_total(&sums), sum = 0, count = 0;
    for (size_t i = 0; i < sums.nrows; i++) {
        sum += sums.rows[i].busy_ns;
        count += sums.rows[i].count;
        if (i > 0) assert_true(sums.rows[i - 1].busy_ns >= sums.rows[i].busy_ns);
    }
    assert_int_equal(sum, total);
    assert_int_equal(count, made->view.nspans);
    assert_int_equal(sums.nrows, 5);
    drupe_frame_sums_clear(&sums);
    made_free(made);
}

/* While time goes on, what is over stays where it is. */
static void bars_keep_their_place(void **state)
{
    (void)state;
    made_view *made = made_plain();
    size_t all = made->view.nspans;
    made->view.ncells = 0;
    made->view.nlanes = 1;
    rules_bar before[64], after[64];
    made->view.nspans = 24;
    char *html = html_of(made, DRUPE_FRAME_EVENTS, true);
    size_t first = rules_html(html, before, 64);
    free(html);
    made->view.nspans = 28;
    html = html_of(made, DRUPE_FRAME_EVENTS, true);
    size_t second = rules_html(html, after, 64);
    free(html);
    assert_true(all > 28 && first > 24 && second == first + 4);
    for (size_t i = 0; i < 24; i++) {
        assert_true(fabs(before[i].left - after[i].left) < 0.01);
        assert_true(fabs(before[i].width - after[i].width) < 0.01);
        assert_string_equal(before[i].colour, after[i].colour);
    }
    made_free(made);
}

/* The times of the bars are those of the spans. */
static void bars_are_where_the_work_was(void **state)
{
    (void)state;
    made_view *made = made_plain();
    rules_bar bars[64];
    char *html = html_of(made, DRUPE_FRAME_EVENTS, false), colour[8];
    assert_true(rules_html(html, bars, 64) >= made->view.nspans);
    double from = (double)made->spans[34].start_ns, length = 1704e6;
    for (size_t i = 0; i < made->view.nspans; i++) {
        const drupe_view_span *span = &made->spans[i];
        snprintf(colour, sizeof colour, "#%06x", (unsigned)drupe_view_colour(span->cell));
        assert_string_equal(bars[i].colour, colour);
        assert_true(fabs(bars[i].left - 100.0 * ((double)span->start_ns - from) / length) < 0.02);
        assert_true(fabs(bars[i].width - 100.0 * (double)span->busy_ns / length) < 0.02);
    }
    free(html);
    made_free(made);
}

static void failures_are_red(void **state)
{
    (void)state;
    made_view *made = made_plain();
    char *html = html_of(made, DRUPE_FRAME_EVENTS, false);
    assert_null(strstr(html, "#db2c2b"));
    free(html);
    made->spans[7].status = DRUPE_TRACE_FAILED;
    made->cells[0].failed = 1;
    html = html_of(made, DRUPE_FRAME_EVENTS, false);
    char *text = text_of(made, DRUPE_FRAME_EVENTS, 0, false);
    rules_bar bars[64];
    size_t count = rules_html(html, bars, 64), red = 0;
    for (size_t i = 0; i < count && i < 64; i++) red += strcmp(bars[i].colour, "#db2c2b") == 0;
    assert_int_equal(red, 1);
    assert_non_null(strstr(text, "\u00b7 1 failed"));
    assert_non_null(strchr(text, '!'));
    free(html);
    free(text);
    made_free(made);
}

static void notes_say_what_is_not_exact(void **state)
{
    (void)state;
    made_view *made = made_plain();
    made->spans[3].count = 12000;
    made->spans[4].exact = false;
    made->cells[1].missed = 1234567;
    made->cells[1].skipped = 2;
    char *text = text_of(made, DRUPE_FRAME_EVENTS, 0, false),
         *html = html_of(made, DRUPE_FRAME_EVENTS, false);
    static const char *const notes[] = {
        "12 000 submissions are drawn as 1 bar,", "Hatched (\u2591): it ran at some",
        "1.23 M submissions came too fast", "2 did not run: 2 after a failure"};
    for (size_t i = 0; i < DRUPE_COUNT_OF(notes); i++) {
        if (strstr(text, notes[i]) == NULL) fail_msg("\"%s\" is missing in\n%s", notes[i], text);
        assert_non_null(strstr(html, notes[i]));
    }
    keep("x-notes", "html", html);
    free(text);
    free(html);
    made_free(made);
}

/* What is only known as an interval looks different from work that was measured, says so, and is never busy.
 */
static void intervals_are_hatched(void **state)
{
    (void)state;
    made_view *made = made_plain();
    char *html = html_of(made, DRUPE_FRAME_EVENTS, false),
         *text = text_of(made, DRUPE_FRAME_EVENTS, 0, false);
    assert_null(strstr(html, "linear-gradient"));
    assert_null(strstr(html, "Hatched"));
    assert_null(strstr(text, "\u2591"));
    free(html);
    free(text);
    made->view.ncells = 0;
    for (size_t i = 0; i < made->view.nspans; i++) {
        made->spans[i].exact = false;
        made->spans[i].busy_ns = 0;
    }
    html = html_of(made, DRUPE_FRAME_EVENTS, false);
    text = text_of(made, DRUPE_FRAME_EVENTS, 0, false);
    assert_non_null(strstr(html, "linear-gradient"));
    assert_non_null(strstr(html, "ran at some time between"));
    assert_non_null(strstr(text, "GPU busy at most 57 % of"));
    assert_non_null(strstr(text, "\u2591\u2591"));
    assert_null(strstr(text, "\u2588"));
    assert_non_null(strstr(text, "\u2264 ")); /* the sum of a lane */
    assert_non_null(strstr(text, "unknown")); /* of a label */
    assert_null(strstr(text, "GB/s"));
    keep("y-intervals", "html", html);
    keep("y-intervals", "txt", text);
    free(html);
    free(text);
    made->spans[1].exact = true; /* and one that was measured */
    made->spans[1].busy_ns = made->spans[1].end_ns - made->spans[1].start_ns;
    text = text_of(made, DRUPE_FRAME_EVENTS, 0, false);
    assert_non_null(strstr(text, "GPU busy 2.4 % to 57 % of"));
    assert_non_null(strstr(text, "\u2265 41.0 ms"));
    free(text);
    made_free(made);
}

/* Waiting, running and submitted. */
static void states_are_told_apart(void **state)
{
    (void)state;
    made_view *made = made_plain();
    static const struct {
        drupe_view_state state;
        const char *line, *title;
    } cases[] = {{DRUPE_VIEW_RUNNING, "\u00b7 1 running", "so far at"},
                 {DRUPE_VIEW_WAITING, "\u00b7 1 waiting", "waiting since"},
                 {DRUPE_VIEW_SUBMITTED, "\u00b7 1 submitted", "it is not known whether it has started"}};
    made->view.ncells = 0;
    drupe_view_span *span = &made->spans[33];
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        span->end_ns = 0;
        span->state = (uint8_t)cases[i].state;
        span->exact = cases[i].state != DRUPE_VIEW_SUBMITTED;
        span->busy_ns = cases[i].state == DRUPE_VIEW_RUNNING ? made->view.now_ns - span->start_ns : 0;
        char *html = html_of(made, DRUPE_FRAME_EVENTS, false),
             *text = text_of(made, DRUPE_FRAME_EVENTS, 120, false);
        for (size_t k = 0; k < DRUPE_COUNT_OF(cases); k++) {
            assert_int_equal(strstr(text, cases[k].line) != NULL, i == k);
            if ((strstr(html, cases[k].title) != NULL) != (i == k)) fail_msg("%zu %zu: %s", i, k, html);
        }
        keep(i == 0 ? "z-running" : i == 1 ? "z-waiting" : "z-submitted", "html", html);
        keep(i == 0 ? "z-running" : i == 1 ? "z-waiting" : "z-submitted", "txt", text);
        free(html);
        free(text);
    }
    made_free(made);
}

/* A queue whose work ran as functions of the host on a CPU: the table and the shares have the same sums. */
static void functions_of_a_cpu_are_its_work(void **state)
{
    (void)state;
    made_view *made = made_plain();
    made->view.ncells = 0;
    made->lanes[0].kind = DRUPE_VIEW_HOST;
    char *text = text_of(made, DRUPE_FRAME_TABLE, 0, false);
    assert_non_null(strstr(text, "GPU busy 5.6 % of")); /* the copies */
    free(text);
    for (size_t i = 0; i < 2; i++)
        snprintf(made->lanes[i].device, sizeof made->lanes[i].device, "host:cpu:0");
    snprintf(made->devices[0].use.filter, sizeof made->devices[0].use.filter, "host:cpu:0");
    text = text_of(made, DRUPE_FRAME_TABLE, 0, false);
    assert_non_null(strstr(text, "CPU busy 57 % of"));
    free(text);
    made_free(made);
}

static void units_have_three_digits(void **state)
{
    (void)state;
    assert_string_equal(drupe_unit_bytes(0).text, "0 B");
    assert_string_equal(drupe_unit_bytes(1023).text, "1023 B");
    assert_string_equal(drupe_unit_bytes(1024).text, "1.00 KiB");
    assert_string_equal(drupe_unit_bytes(UINT64_C(1) << 29).text, "512 MiB");
    assert_string_equal(drupe_unit_bytes(UINT64_MAX).text, "16.0 EiB");
    assert_string_equal(drupe_unit_time(999).text, "999 ns");
    assert_string_equal(drupe_unit_time(9996).text, "10.0 \u00b5s");
    assert_string_equal(drupe_unit_time(999600000).text, "1.00 s");
    assert_string_equal(drupe_unit_time(UINT64_C(120000000000)).text, "120 s");
    assert_string_equal(drupe_unit_time(UINT64_C(1200000000000)).text, "20.0 min");
    assert_string_equal(drupe_unit_rate(UINT64_C(21300000000), 1000000000).text, "21.3 GB/s");
    assert_string_equal(drupe_unit_rate(5, 0).text, "-");
    assert_string_equal(drupe_unit_count(9999).text, "9999");
    assert_string_equal(drupe_unit_count(12345).text, "12 345");
    assert_string_equal(drupe_unit_count(1000000).text, "1.00 M");
    assert_string_equal(drupe_unit_share(1, 3).text, "33 %");
    assert_string_equal(drupe_unit_share(1, 5000).text, "<0.1 %");
    assert_string_equal(drupe_unit_share(1, 0).text, "-");
    assert_int_equal(drupe_unit_round(1400000), 1500000);
    assert_int_equal(drupe_unit_round(1500001), 2000000);
    assert_true(drupe_unit_round(UINT64_MAX) == UINT64_MAX);
}

static void label_is(const char *label, size_t width, const char *expected)
{
    drupe_text text = {0};
    drupe_label_text(&text, label, width, true);
    assert_string_equal(drupe_text_get(&text), expected);
    drupe_text_clear(&text);
}

static void labels_fit(void **state)
{
    (void)state;
    label_is("vadd", 6, "vadd  ");
    label_is("vaddition", 6, "vaddi\u2026");
    label_is("\u6f22\u5b57\u6f22", 5, "\u6f22\u5b57\u2026");
    label_is("\u6f22\u5b57\u6f22", 4, "\u6f22\u2026 ");
    label_is("sqrt, multiply, add: lines 3-4", 20, "sqrt, mu\u2026: lines 3-4");
    label_is("sqrt, multiply: line 3", 8, "sqrt, m\u2026");
    label_is("a\x1b[1mb\xff", 8, "a\uFFFD[1mb\uFFFD ");
    label_is("a\u202eb", 4, "a\uFFFDb ");
    label_is("", 3, "   ");
    label_is("\xe6\xbc", 3, "\uFFFD\uFFFD ");
}

static void amounts_of_memory_have_the_hues_of_cells(void **state)
{
    made_view *made = made_plain();
    char *memory = html_of(made, DRUPE_FRAME_MEMORY, false);
    (void)state;
    for (uint32_t cell = 3; cell <= 5; cell++) {
        char key[120];
        snprintf(key, sizeof key,
                 "background-color:#%06x\"></div><div style=\"white-space:nowrap\">[%u]</div>",
                 (unsigned)drupe_view_colour(cell), cell);
        assert_non_null(strstr(memory, key));
    }
    free(memory);
    for (size_t i = 0; i < made->view.devices[0].nsamples; i++) made->samples[0][i].cell = 7 + (uint32_t)i;
    memory = html_of(made, DRUPE_FRAME_MEMORY, false);
    assert_non_null(strstr(memory, "earlier ones,"));
    assert_non_null(strstr(memory, ">[66]<"));
    assert_null(strstr(memory, ">[54]<"));
    free(memory);
    made_free(made);
}

/* What is not used, and a device that does nothing, look empty on any ground. */
static void meters_are_outlines(void **state)
{
    made_view *made = made_plain();
    (void)state;
    made->devices[0].busy = 0.0;
    char *html = html_of(made, DRUPE_FRAME_DASHBOARD, true), *at = html;
    size_t meters = 0;
    while ((at = strstr(at, "height:10px;overflow:hidden;border-radius:2px;border:1px solid #80808080\">")) !=
           NULL) {
        meters++;
        at++;
    }
    assert_int_equal(meters, 2);
    free(html);
    made_free(made);
}

/* The highest bar that is drawn for memory over time. */
static double highest(made_view *made)
{
    rules_bar bars[DRUPE_VIEW_SAMPLES];
    char *html = html_of(made, DRUPE_FRAME_MEMORY, false);
    size_t count = rules_html(html, bars, DRUPE_VIEW_SAMPLES);
    double best = 0.0;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t cell = 3; cell <= 5; cell++) {
            char colour[8];
            snprintf(colour, sizeof colour, "#%06x", (unsigned)drupe_view_colour(cell));
            if (strcmp(bars[i].colour, colour) == 0) best = fmax(best, bars[i].height);
        }
    }
    free(html);
    return best;
}

/* Little memory looks like little, and much never touches the top of its chart. */
static void memory_is_drawn_as_much_as_it_is(void **state)
{
    made_view *made = made_plain();
    (void)state;
    assert_true(highest(made) > 40.0 && highest(made) <= 80.0);
    for (size_t i = 0; i < made->view.devices[0].nsamples; i++) {
        made->samples[0][i].used[0] = UINT64_C(5600) << 10;
        made->samples[0][i].used[1] = 0;
    }
    assert_true(highest(made) > 5.0 && highest(made) < 40.0);
    char *html = html_of(made, DRUPE_FRAME_MEMORY, false);
    assert_non_null(strstr(html, "most 5.47 MiB in 1.81 s, top 16.0 MiB"));
    free(html);
    made_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_frames),
        cmocka_unit_test(headlines),
        cmocka_unit_test(work_after_the_code),
        cmocka_unit_test(live_frames_tell_their_time),
        cmocka_unit_test(empty_views),
        cmocka_unit_test(any_views),
        cmocka_unit_test(shares_fit),
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(big_views_stay_small),
        cmocka_unit_test(tables_add_up),
        cmocka_unit_test(bars_keep_their_place),
        cmocka_unit_test(bars_are_where_the_work_was),
        cmocka_unit_test(failures_are_red),
        cmocka_unit_test(notes_say_what_is_not_exact),
        cmocka_unit_test(intervals_are_hatched),
        cmocka_unit_test(states_are_told_apart),
        cmocka_unit_test(functions_of_a_cpu_are_its_work),
        cmocka_unit_test(units_have_three_digits),
        cmocka_unit_test(labels_fit),
        cmocka_unit_test(amounts_of_memory_have_the_hues_of_cells),
        cmocka_unit_test(memory_is_drawn_as_much_as_it_is),
        cmocka_unit_test(meters_are_outlines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
