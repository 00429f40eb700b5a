/* JSON text, UTF-8 and dates. */
#include "base/base.h"
#include "jkernel/wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

static void check_json(const char *text, size_t size, const char *expected)
{
    jk_buffer buffer = {0};
    jk_buffer_append_json(&buffer, text, size);
    assert_false(buffer.failed);
    assert_int_equal(buffer.size, strlen(expected));
    assert_memory_equal(buffer.data, expected, buffer.size);
    jk_buffer_clear(&buffer);
}

#define LOST "\xef\xbf\xbd"

static void test_json(void **state)
{
    (void)state;
    check_json("", 0, "\"\"");
    check_json("a\"b\\c\n\r\t\b\f", 10, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\"");
    check_json("\0\x1f\x7f", 3, "\"\\u0000\\u001f\\u007f\"");
    check_json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x8d\x91", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x8d\x91\"");
    check_json("a\xff"
               "b",
               3, "\"a" LOST "b\"");
    check_json("\xc0\xaf", 2, "\"" LOST LOST "\"");
    check_json("\xed\xa0\x80", 3, "\"" LOST LOST LOST "\"");
    check_json("\xf4\x90\x80\x80", 4, "\"" LOST LOST LOST LOST "\"");
    check_json("\xe2\x82", 2, "\"" LOST LOST "\"");
}

static void test_any_bytes_make_json(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 2000; round++) {
        char bytes[64];
        size_t size = (size_t)rand() % sizeof bytes;
        for (size_t i = 0; i < size; i++) bytes[i] = (char)(rand() % 256);
        jk_buffer buffer = {0};
        jk_buffer_append_json(&buffer, bytes, size);
        json_error_t error;
        json_t *value = json_loadb(buffer.data, buffer.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        if (!value) fail_msg("not JSON: %s", error.text);
        json_decref(value);
        jk_buffer_clear(&buffer);
    }
}

static void test_utf8(void **state)
{
    (void)state;
    assert_int_equal(drupe_utf8_next("", 0), 0);
    assert_int_equal(drupe_utf8_next("a", 1), 1);
    assert_int_equal(drupe_utf8_next("\xf0\x9f\x8d\x91", 4), 4);
    for (size_t size = 1; size < 4; size++) assert_int_equal(drupe_utf8_next("\xf0\x9f\x8d\x91", size), 0);
    assert_int_equal(drupe_utf8_next("\x80", 1), -1);
    assert_int_equal(drupe_utf8_next("\xe0\x80\x80", 3), -1);
    assert_int_equal(drupe_utf8_next("\xf8", 1), -1);
    assert_true(drupe_utf8_valid("\xe2\x82\xac", 3));
    assert_false(drupe_utf8_valid("\xe2\x82", 2));
    assert_true(drupe_utf8_valid("", 0));
}

static void test_date(void **state)
{
    (void)state;
    char text[JK_DATE_SIZE];
    jk_date_format((struct timespec){.tv_sec = 951782400, .tv_nsec = 1999}, text);
    assert_string_equal(text, "2000-02-29T00:00:00.000001Z");
    static const struct {
        const char *text;
        time_t seconds;
        long ns;
    } good[] = {
        {"2000-02-29T00:00:00.000001Z", 951782400, 1000},
        {"2000-02-29T00:00:00Z", 951782400, 0},
        {"2000-02-29T01:30:00.5+01:30", 951782400, 500000000},
        {"2000-02-28T23:00:00.123456789012-0100", 951782400, 123456789},
        {"1970-01-01T00:00:00.Z", 0, 0},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct timespec date = {.tv_sec = -1};
        assert_true(jk_date_parse(good[i].text, &date));
        assert_int_equal(date.tv_sec, good[i].seconds);
        assert_int_equal(date.tv_nsec, good[i].ns);
    }
    static const char *const bad[] = {"",
                                      "now",
                                      "2000-02-29",
                                      "2000-02-29T00:00:00",
                                      "2000-02-29T00:00:00.5",
                                      "2000-02-29T00:00:00Z ",
                                      "2000-13-29T00:00:00Z",
                                      "2000-02-29T00:00:00+1",
                                      "2000-02-29T00:00:00+24:00",
                                      "2000-02-29T00:00:00*01:00"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct timespec date;
        assert_false(jk_date_parse(bad[i], &date));
    }
}

static void test_header(void **state)
{
    (void)state;
    jk_session session;
    assert_int_equal(jk_session_open(&session), 0);
    for (unsigned long n = 1; n <= 2; n++) {
        jk_buffer header = {0};
        char id[96];
        assert_int_equal(jk_session_header(&session, "odd\"type", (struct timespec){0}, &header), n);
        json_error_t error;
        json_t *value = json_loadb(header.data, header.size, 0, &error);
        assert_non_null(value);
        snprintf(id, sizeof id, "%s_%ld_%lu", session.id, session.pid, n);
        assert_string_equal(json_string_value(json_object_get(value, "msg_id")), id);
        assert_int_equal(jk_session_number(&session, id), n);
        assert_string_equal(json_string_value(json_object_get(value, "msg_type")), "odd\"type");
        assert_string_equal(json_string_value(json_object_get(value, "version")), JK_PROTOCOL_VERSION);
        assert_string_equal(json_string_value(json_object_get(value, "date")), "1970-01-01T00:00:00.000000Z");
        json_decref(value);
        jk_buffer_clear(&header);
    }
    assert_int_equal(jk_session_number(&session, session.id), 0);
    assert_int_equal(jk_session_number(&session, "of a client"), 0);
    assert_int_equal(jk_session_number(&session, ""), 0);
}

static void test_log(void **state)
{
    char text[4096] = "", long_line[3000];
    memset(long_line, 'x', sizeof long_line - 1);
    long_line[sizeof long_line - 1] = '\0';
    jk_log("plain %d", 7);
    jk_log("forged\n2000-01-01 %s", "\x1b[2J");
    jk_log("%s", long_line);
    FILE *file = fopen(*state, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_int_equal(text[size - 1], '\n');
    int lines = 0;
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    assert_int_equal(lines, 3);
    assert_non_null(strstr(text, "plain 7\n"));
    assert_non_null(strstr(text, "forged?2000-01-01 ?[2J\n"));
}

static int log_remove(void **state)
{
    return unlink(*state);
}

int main(void)
{
    /* The log is opened on first use. */
    char path[64];
    snprintf(path, sizeof path, "/tmp/jk-log-%ld", (long)getpid());
    setenv("DRUPE_LOG", path, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_any_bytes_make_json),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_date),
        cmocka_unit_test(test_header),
        cmocka_unit_test_prestate_setup_teardown(test_log, NULL, log_remove, path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
