/* The end of the trace as text, for the report of a crash. */
#include "trace_records.h"

static size_t place_text(uint32_t site, uint32_t cell, char *text, size_t size)
{
    return (size_t)snprintf(text, size, "cell [%u], line %u", cell, site);
}

static const drupe_observer observer = {.site_text = place_text};

/* Ticks so long ago. */
static uint64_t ago(uint64_t ns)
{
    const drupe_ticks_scale scale = drupe_ticks_scale_now();
    const uint64_t now = drupe_ticks(), from = drupe_ticks_ns_by(&scale, now);
    uint64_t low = 0, high = now;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (from - drupe_ticks_ns_by(&scale, middle) > ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void expect_in(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("'%s' is not in '%s'", part, text);
}

static void the_latest_are_lines_of_text(void **state)
{
    (void)state;
    char text[2048];
    drupe_trace_work work = {.kind = DRUPE_WORK_KERNEL, .items = 64, .ticks = ago(UINT64_C(3500000000))};
    drupe_library_observe(&observer);
    const uint64_t first = begin("one\ntwo\x7f", &work);
    work = (drupe_trace_work){.kind = DRUPE_WORK_COPY, .bytes = 4096, .ticks = ago(150000000)};
    const uint64_t second = begin("copy", &work);
    drupe_trace_end(second, DRUPE_TRACE_SKIPPED);
    drupe_trace_skip(drupe_inflight_next());
    const drupe_trace_queue nowhere = {.number = 9};
    const drupe_subject what = {.number = drupe_inflight_next(), .label = "stray"};
    work = (drupe_trace_work){.kind = DRUPE_WORK_FILL, .ticks = drupe_ticks() * 2}; /* in the future */
    drupe_trace_begin(&nowhere, &what, &work);
    size_t size = drupe_trace_text(text, sizeof text - 1, 3);
    drupe_library_observe(NULL);
    text[size] = '\0';
    char line[128];
    snprintf(line, sizeof line, "#%llu kernel 'one?two?' on scripted:cpu:0 (queue 3), cell [4], line 17, 64 ",
             (unsigned long long)first);
    assert_int_equal(strncmp(text, line, strlen(line)), 0);
    expect_in(text, "work-items: submitted 3.");
    expect_in(text, " s ago, not known to be over\n");
    expect_in(text, " 'copy' on scripted:cpu:0 (queue 3), cell [4], line 17, 4096 bytes: submitted 1");
    expect_in(text, " ms ago, skipped when looked at ");
    expect_in(text, " 'stray' on a device (queue 9)");
    expect_in(text, "submitted 0.0 us ago");
    assert_int_equal(text[size - 1], '\n');
    /* What does not fit is what is older. */
    size = drupe_trace_text(text, 150, 3);
    text[size] = '\0';
    assert_null(strstr(text, "one?two?"));
    expect_in(text, "'stray'");
    assert_int_equal(drupe_trace_text(text, 10, 3), 0);
    assert_int_equal(drupe_trace_text(text, sizeof text, 0), 0);
}

/* A line has an end: what the observer says of a place may be long. */
static size_t long_place(uint32_t site, uint32_t cell, char *text, size_t size)
{
    (void)site, (void)cell;
    memset(text, 'p', size - 1);
    text[size - 1] = '\0';
    return size - 1;
}

static void long_lines_are_cut(void **state)
{
    (void)state;
    static const drupe_observer talkative = {.site_text = long_place};
    char text[512], label[60];
    memset(label, 'x', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    const drupe_trace_work work = {.kind = DRUPE_WORK_KERNEL, .bytes = UINT64_MAX, .items = UINT64_MAX};
    drupe_library_observe(&talkative);
    begin(label, &work);
    const size_t size = drupe_trace_text(text, sizeof text, 1);
    drupe_library_observe(NULL);
    assert_int_equal(size, 256);
    assert_int_equal(text[255], '\n');
}

static void a_ring_without_records_has_no_text(void **state)
{
    (void)state;
    char text[512];
    const drupe_trace_work work = {.kind = DRUPE_WORK_FILL};
    begin("fill", &work);
    for (size_t i = 1; i < DRUPE_TRACE_RECORDS; i++) drupe_trace_skip(drupe_inflight_next());
    assert_true(drupe_trace_text(text, sizeof text, 3) > 0); /* it goes back that far */
    drupe_trace_skip(drupe_inflight_next());
    assert_int_equal(drupe_trace_text(text, sizeof text, 3), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(the_latest_are_lines_of_text),
        TEST(long_lines_are_cut),
        TEST(a_ring_without_records_has_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
