/* Incoming messages, well formed and otherwise. */
#include "jkernel/wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEADER                                                                                               \
    "{\"msg_id\":\"m1\",\"msg_type\":\"execute_request\",\"session\":\"s\",\"extra\":[1,{\"a\":\"}\"}]}"

static jk_signer *signer;

static int set_up(void **state)
{
    (void)state;
    return jk_signer_create("hmac-sha256", "key", 3, &signer);
}

static int tear_down(void **state)
{
    (void)state;
    jk_signer_release(signer);
    return 0;
}

static jk_bytes slice(const char *text)
{
    return (jk_bytes){text, strlen(text)};
}

static void add(jk_frames *frames, jk_bytes bytes)
{
    if (!frames->items) {
        frames->capacity = 2048;
        frames->items = calloc(frames->capacity, sizeof *frames->items);
        assert_non_null(frames->items);
    }
    zmq_msg_t *frame = &frames->items[frames->count++];
    assert_int_equal(zmq_msg_init_size(frame, bytes.size), 0);
    if (bytes.size) memcpy(zmq_msg_data(frame), bytes.data, bytes.size);
}

/* A message with one identity, these four parts and their right signature. */
static jk_frames sealed(const char *const parts[JK_SIGNED_PARTS])
{
    jk_frames frames = {0};
    jk_bytes slices[JK_SIGNED_PARTS];
    char signature[JK_SIGNATURE_SIZE];
    for (int i = 0; i < JK_SIGNED_PARTS; i++) slices[i] = slice(parts[i]);
    assert_int_equal(jk_signer_sign(signer, slices, signature), 64);
    add(&frames, slice("client"));
    add(&frames, slice("<IDS|MSG>"));
    add(&frames, slice(signature));
    for (int i = 0; i < JK_SIGNED_PARTS; i++) add(&frames, slices[i]);
    return frames;
}

static void check_refused(jk_frames frames, const char *reason)
{
    const char *problem = NULL;
    jk_replay *replay = jk_replay_create();
    assert_null(jk_message_parse(&frames, signer, replay, &problem));
    jk_replay_release(replay);
    assert_int_equal(frames.count, 0);
    assert_non_null(problem);
    if (!strstr(problem, reason)) fail_msg("\"%s\" lacks \"%s\"", problem, reason);
}

static void check_parts(const char *header, const char *parent, const char *metadata, const char *content,
                        const char *reason)
{
    const char *const parts[] = {header, parent, metadata, content};
    check_refused(sealed(parts), reason);
}

static bool slice_equals(jk_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

static void test_good(void **state)
{
    (void)state;
    const char *const parts[] = {HEADER, "null", " {} ", "{\"code\":\"x = '}' \\\" \"}"};
    jk_frames frames = sealed(parts);
    add(&frames, slice("raw"));
    add(&frames, slice(""));
    const char *problem;
    jk_message *message = jk_message_parse(&frames, signer, NULL, &problem);
    if (!message) {
        fail_msg("%s", problem);
        return;
    }
    assert_string_equal(message->id, "m1");
    assert_string_equal(message->type, "execute_request");
    assert_null(message->subshell);
    assert_int_equal(message->identities, 1);
    assert_true(slice_equals(jk_message_identity(message, 0), "client"));
    assert_true(slice_equals(message->parts[JK_HEADER], HEADER));
    assert_true(slice_equals(message->parts[JK_PARENT_HEADER], "{}"));
    assert_true(slice_equals(message->parts[JK_CONTENT], parts[3]));
    assert_int_equal(jk_message_buffer_count(message), 2);
    assert_true(slice_equals(jk_message_buffer(message, 0), "raw"));
    assert_int_equal(jk_message_buffer(message, 1).size, 0);
    jk_message_release(message);
}

static void test_flag(void **state)
{
    (void)state;
    static const struct {
        const char *content;
        bool flag;
    } cases[] = {{"{\"restart\":true}", true},
                 {"{\"restart\":false}", false},
                 {"{\"restart\":1}", false},
                 {"{}", false},
                 {"null", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const parts[] = {HEADER, "{}", "{}", cases[i].content};
        jk_frames frames = sealed(parts);
        const char *problem;
        jk_message *message = jk_message_parse(&frames, signer, NULL, &problem);
        assert_non_null(message);
        assert_int_equal(jk_message_flag(message, "restart"), cases[i].flag);
        jk_message_release(message);
    }
}

static void test_headers(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "null",
                                      "[]",
                                      "7",
                                      "{",
                                      "{}",
                                      "{\"msg_id\":\"a\"}",
                                      "{\"msg_type\":\"a\"}",
                                      "{\"msg_id\":1,\"msg_type\":\"a\"}",
                                      "{\"msg_id\":\"a\",\"msg_type\":null}",
                                      "{\"msg_id\":\"a\",\"msg_type\":\"b\"",
                                      "{\"msg_id\":\"a\\u0000b\",\"msg_type\":\"b\"}",
                                      "{\"msg_id\":\"\xff\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) check_parts(bad[i], "{}", "{}", "{}", "header");
    char *huge = malloc(70001);
    assert_non_null(huge);
    memset(huge, ' ', 70000);
    huge[70000] = '\0';
    check_parts(huge, "{}", "{}", "{}", "64 KiB");
    free(huge);
}

static void test_objects(void **state)
{
    (void)state;
    static const char *const bad[] = {"",      "{",          "}",         "[]",     "{]",        "{[}",
                                      "{}{}",  "{} x",       "{\"a",      "{\"a\\", "{\"a\\\"}", "nul",
                                      "nulll", "{\"a\":[1}", "{\"a\":{}", "\"a\"",  "1",         "[{]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_parts(HEADER, bad[i], "{}", "{}", "not a JSON object");
        check_parts(HEADER, "{}", bad[i], "{}", "not a JSON object");
        check_parts(HEADER, "{}", "{}", bad[i], "not a JSON object");
    }
    char deep[8001];
    memset(deep, '{', 8000);
    deep[8000] = '\0';
    check_parts(HEADER, "{}", "{}", deep, "not a JSON object");
}

static void test_shapes(void **state)
{
    (void)state;
    const char *const parts[] = {HEADER, "{}", "{}", "{}"};
    check_refused((jk_frames){0}, "delimiter");
    for (size_t kept = 1; kept < 7; kept++) {
        jk_frames frames = sealed(parts);
        while (frames.count > kept) zmq_msg_close(&frames.items[--frames.count]);
        check_refused(frames, kept < 2 ? "delimiter" : "too few");
    }
    jk_frames frames = {0};
    for (int i = 0; i < 100; i++) add(&frames, slice("identity"));
    add(&frames, slice("<IDS|MSG>"));
    for (int i = 0; i < 5; i++) add(&frames, slice("{}"));
    check_refused(frames, "delimiter");
}

static void test_signatures(void **state)
{
    (void)state;
    const char *const parts[] = {HEADER, "{}", "{}", "{}"};
    static const char *const bad[] = {"", "0", "not hexadecimal",
                                      "0000000000000000000000000000000000000000000000000000000000000000"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        jk_frames frames = sealed(parts);
        zmq_msg_close(&frames.items[2]);
        zmq_msg_init_size(&frames.items[2], strlen(bad[i]));
        memcpy(zmq_msg_data(&frames.items[2]), bad[i], strlen(bad[i]));
        check_refused(frames, "signature");
    }
}

static void test_replay_is_after_parse(void **state)
{
    (void)state;
    const char *problem;
    jk_replay *replay = jk_replay_create();
    const char *const good[] = {HEADER, "{}", "{}", "{}"};
    for (int turn = 0; turn < 2; turn++) {
        jk_frames frames = sealed(good);
        jk_message *message = jk_message_parse(&frames, signer, replay, &problem);
        assert_int_equal(message != NULL, turn == 0);
        if (!message) assert_non_null(strstr(problem, "replay"));
        jk_message_release(message);
    }
    /* A message that does not parse is refused for that reason, the second time too. */
    const char *const bad[] = {HEADER, "{}", "{}", "{"};
    for (int turn = 0; turn < 2; turn++) {
        jk_frames frames = sealed(bad);
        assert_null(jk_message_parse(&frames, signer, replay, &problem));
        assert_non_null(strstr(problem, "JSON object"));
    }
    jk_replay_release(replay);
}

/* Flip, cut and drop at random: the parser must refuse or accept, and the sanitizers watch. */
static void test_mutations(void **state)
{
    (void)state;
    srand(7);
    const char *const parts[] = {HEADER, "{\"a\":[1,2]}", "{}", "{\"code\":\"print\"}"};
    jk_signer *open;
    assert_int_equal(jk_signer_create("hmac-sha256", "", 0, &open), 0);
    int accepted = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        jk_frames frames = sealed(parts);
        zmq_msg_t *frame = &frames.items[(size_t)rand() % frames.count];
        size_t size = zmq_msg_size(frame);
        zmq_msg_t changed;
        size_t cut = rand() % 3 ? size : (size_t)rand() % (size + 1);
        zmq_msg_init_size(&changed, cut);
        memcpy(zmq_msg_data(&changed), zmq_msg_data(frame), cut);
        if (cut) ((char *)zmq_msg_data(&changed))[(size_t)rand() % cut] ^= (char)(1 << rand() % 8);
        zmq_msg_move(frame, &changed);
        zmq_msg_close(&changed);
        if (rand() % 8 == 0) zmq_msg_close(&frames.items[--frames.count]);
        const char *problem;
        jk_message *message = jk_message_parse(&frames, open, NULL, &problem);
        accepted += message != NULL;
        refused += message == NULL;
        jk_message_release(message);
    }
    assert_true(accepted > 100 && refused > 100);
    jk_signer_release(open);
}

static void test_socket_round_trip(void **state)
{
    (void)state;
    void *context = zmq_ctx_new();
    void *left = zmq_socket(context, ZMQ_PAIR), *right = zmq_socket(context, ZMQ_PAIR);
    assert_int_equal(zmq_bind(left, "inproc://frames"), 0);
    assert_int_equal(zmq_connect(right, "inproc://frames"), 0);
    jk_bytes buffers[40];
    for (int i = 0; i < 40; i++) buffers[i] = slice("buffer");
    jk_envelope envelope = {
        .topic = slice("topic"), .header = slice(HEADER), .buffers = buffers, .nbuffers = 40};
    assert_int_equal(jk_envelope_send(&envelope, left, signer), 0);
    jk_frames frames;
    const char *problem;
    assert_int_equal(jk_frames_receive(right, &frames), 1);
    jk_message *message = jk_message_parse(&frames, signer, NULL, &problem);
    if (!message) {
        fail_msg("%s", problem);
        return;
    }
    assert_true(slice_equals(jk_message_identity(message, 0), "topic"));
    assert_true(slice_equals(message->parts[JK_PARENT_HEADER], "{}"));
    assert_int_equal(jk_message_buffer_count(message), 40);
    jk_message_release(message);
    assert_int_equal(jk_frames_receive(right, &frames), 0);

    /* A message of too many frames is read to its end; the next one is whole. */
    for (int i = 0; i < 3000; i++) zmq_send(left, "x", 1, i < 2999 ? ZMQ_SNDMORE : 0);
    zmq_send(left, "next", 4, 0);
    assert_int_equal(jk_frames_receive(right, &frames), -1);
    assert_int_equal(jk_frames_receive(right, &frames), 1);
    assert_int_equal(frames.count, 1);
    jk_frames_clear(&frames);
    zmq_close(left);
    zmq_close(right);
    zmq_ctx_term(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_flag),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_replay_is_after_parse),
        cmocka_unit_test(test_socket_round_trip),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
