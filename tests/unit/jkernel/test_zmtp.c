/* ZMTP: what a peer may send, in pieces of any size; what is sent, read by libzmq and by our own reader. */
#include "jkernel/wire/zmtp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define READY_END (JK_GREETING_SIZE + 27) /* of a SUB */

static jk_signer *signer;

static void content_free(void *data, void *hint)
{
    (void)hint;
    free(data);
}

static void greet(jk_buffer *bytes, const char *kind)
{
    jk_zmtp_greet(bytes, kind);
}

static void frame(jk_buffer *bytes, const char *body, size_t size, bool more)
{
    char head[JK_FRAME_HEAD];
    jk_buffer_append(bytes, head, jk_zmtp_head(head, size, more));
    jk_buffer_append(bytes, body, size);
}

/* What reading gives, as text: R for ready, P for a ping, F or M for the last or another frame with its size.
 */
static void read_all(const jk_buffer *bytes, size_t step, char *events)
{
    jk_zmtp reader = {.frame_most = 1000};
    *events = '\0';
    for (size_t at = 0; at < bytes->size; at += step) {
        jk_bytes rest = {bytes->data + at, bytes->size - at < step ? bytes->size - at : step}, body = {0};
        for (bool go_on = true; go_on;) {
            char *end = events + strlen(events);
            switch (jk_zmtp_read(&reader, &rest, &body)) {
            case JK_ZMTP_WANTS: go_on = false; break;
            case JK_ZMTP_READY: sprintf(end, "R%s ", reader.kind); break;
            case JK_ZMTP_PING: sprintf(end, "P%.*s ", (int)body.size, (const char *)body.data); break;
            case JK_ZMTP_SUBSCRIBE: sprintf(end, "S%.*s ", (int)body.size, (const char *)body.data); break;
            case JK_ZMTP_CANCEL: sprintf(end, "C%.*s ", (int)body.size, (const char *)body.data); break;
            case JK_ZMTP_FRAME:
                for (size_t i = 0; i < body.size; i++) assert_int_equal(((const char *)body.data)[i], 'x');
                sprintf(end, "%c%zu ", reader.more ? 'M' : 'F', body.size);
                break;
            case JK_ZMTP_BROKEN: sprintf(end, "broken"); break;
            }
            if (strstr(events, "broken")) break;
        }
        if (strstr(events, "broken")) break;
    }
    jk_zmtp_clear(&reader);
}

static void expect(const jk_buffer *bytes, const char *events)
{
    static const size_t steps[] = {1, 2, 3, 7, 64, 65, 1000000};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char found[256];
        read_all(bytes, steps[i], found);
        assert_string_equal(found, events);
    }
}

static void test_pieces(void **state)
{
    (void)state;
    char body[1000];
    memset(body, 'x', sizeof body);
    jk_buffer bytes = {0};
    greet(&bytes, "SUB");
    frame(&bytes, body, 3, true);
    frame(&bytes, body, 0, false);
    jk_buffer_append(&bytes, "\x04\x0b\x04PING\0\0ctxt", 13);
    frame(&bytes, body, 255, true);
    frame(&bytes, body, 256, false);
    jk_buffer_append(&bytes, "\x04\x05\x04WHAT", 7); /* a command that nobody knows */
    jk_buffer_append(&bytes, "\x04\x0c\x09SUBSCRIBEin", 14);
    jk_buffer_append(&bytes, "\x04\x07\x06\x43" /* C */ "ANCEL", 9);
    frame(&bytes, body, 1000, false);
    expect(&bytes, "RSUB M3 F0 Pctxt M255 F256 Sin C F1000 ");
    frame(&bytes, body, 1, true);
    bytes.data[bytes.size - 3] = 1;
    expect(&bytes, "RSUB M3 F0 Pctxt M255 F256 Sin C F1000 M1 ");
    jk_buffer_clear(&bytes);
}

static void broken(size_t at, char value)
{
    jk_buffer bytes = {0};
    greet(&bytes, "SUB");
    frame(&bytes, "x", 1, false);
    bytes.data[at] = value;
    expect(&bytes, at == READY_END ? "RSUB broken" : "broken");
    jk_buffer_clear(&bytes);
}

static void test_broken(void **state)
{
    (void)state;
    broken(0, 'G');                        /* "GET / HTTP/1.1" */
    broken(9, 0x7e);                       /* the end of the signature */
    broken(10, 2);                         /* an earlier version */
    broken(12, 'P');                       /* PLAIN */
    broken(16, 'X');                       /* "NULLX" */
    broken(JK_GREETING_SIZE, 0);           /* a message before READY */
    broken(JK_GREETING_SIZE + 3, 'X');     /* another command */
    broken(JK_GREETING_SIZE + 8, 'X');     /* a property whose name is longer than the command */
    broken(JK_GREETING_SIZE + 9, 'X');     /* no socket type */
    broken(JK_GREETING_SIZE + 20, '\x7f'); /* a value that is too long */
    broken(READY_END, '\x08');             /* flags that mean nothing */
    jk_buffer bytes = {0};
    greet(&bytes, "SUB");
    char head[JK_FRAME_HEAD];
    jk_buffer_append(&bytes, head, jk_zmtp_head(head, 1001, false));
    expect(&bytes, "RSUB broken"); /* before any of it has come */
    jk_buffer_clear(&bytes);
}

/* What a wire message says on the wire is a message that its own reader and the signer accept. */
static void wire_message_check(size_t content_size, size_t nbuffers, bool taken)
{
    char *content = calloc(1, content_size + 1);
    assert_non_null(content);
    memset(content, ' ', content_size);
    content[0] = '{';
    content[content_size - 1] = '}';
    const jk_bytes buffers[] = {{"one", 3}, {NULL, 0}};
    atomic_size_t total = 7;
    jk_envelope envelope = {
        .topic = {"topic", 5},
        .header = {"{\"msg_id\":\"i\",\"msg_type\":\"t\"}", 29},
        .content = {content, content_size},
        .buffers = buffers,
        .nbuffers = nbuffers,
    };
    if (taken) envelope.content_free = content_free;
    jk_wire_message *wire = jk_wire_message_pack(&envelope, signer, &total);
    assert_non_null(wire);
    assert_int_equal(total, 7 + wire->size);
    jk_buffer bytes = {0};
    jk_zmtp_greet(&bytes, "SUB");
    for (int i = 0; i < JK_WIRE_MESSAGE_PARTS; i++)
        jk_buffer_append(&bytes, wire->parts[i].data, wire->parts[i].size);
    assert_int_equal(bytes.size, READY_END + wire->size);
    jk_zmtp reader = {.frame_most = 1u << 20};
    jk_bytes rest = {bytes.data, bytes.size}, body = {0}, frames[16] = {{0}};
    assert_int_equal(jk_zmtp_read(&reader, &rest, &body), JK_ZMTP_READY);
    size_t count = 0;
    do {
        assert_int_equal(jk_zmtp_read(&reader, &rest, &body), JK_ZMTP_FRAME);
        frames[count++] = body;
    } while (reader.more);
    assert_int_equal(rest.size, 0);
    assert_int_equal(count, 7 + nbuffers);
    assert_memory_equal(frames[0].data, "topic", 5);
    assert_true(jk_signer_verify(signer, frames[2], &frames[3]));
    assert_int_equal(frames[6].size, content_size);
    if (nbuffers == 2) assert_memory_equal(frames[7].data, "one", 3);
    jk_wire_message_retain(wire);
    jk_wire_message_release(wire);
    assert_int_equal(total, 7 + wire->size);
    jk_wire_message_release(wire);
    assert_int_equal(total, 7);
    jk_buffer_clear(&bytes);
    if (!taken) free(content);
}

static void test_bundles(void **state)
{
    (void)state;
    assert_int_equal(jk_signer_create("hmac-sha256", "key", 3, &signer), 0);
    for (size_t nbuffers = 0; nbuffers <= 2; nbuffers++) {
        wire_message_check(2, nbuffers, false);
        wire_message_check(300, nbuffers, true);
        wire_message_check(70000, nbuffers, true);
    }
    jk_signer_release(signer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_bundles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
