/* Signatures against published vectors, and the replay store. */
#include "jkernel/wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* RFC 4231, test case 2. */
#define KEY    "Jefe"
#define SHA256 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
#define SHA512                                                                                               \
    "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1" \
    "a34d4a"                                                                                                 \
    "6b4b636e070a38bce737"

static const jk_bytes parts[JK_SIGNED_PARTS] = {
    {"what do ", 8}, {"ya want", 7}, {"", 0}, {" for nothing?", 13}};

static jk_bytes slice(const char *text)
{
    return (jk_bytes){text, strlen(text)};
}

static void check_vector(const char *scheme, const char *expected)
{
    jk_signer *signer;
    char hex[JK_SIGNATURE_SIZE];
    assert_int_equal(jk_signer_create(scheme, KEY, 4, &signer), 0);
    assert_int_equal(jk_signer_sign(signer, parts, hex), strlen(expected));
    assert_string_equal(hex, expected);
    /* The second use of a signer gives the same. */
    assert_true(jk_signer_sign(signer, parts, hex) > 0);
    assert_string_equal(hex, expected);
    assert_true(jk_signer_verify(signer, slice(expected), parts));
    jk_signer_release(signer);
}

static void test_vectors(void **state)
{
    (void)state;
    check_vector("hmac-sha256", SHA256);
    check_vector("hmac-sha512", SHA512);
}

static void test_wrong(void **state)
{
    (void)state;
    jk_signer *signer;
    assert_int_equal(jk_signer_create("hmac-sha256", KEY, 4, &signer), 0);
    char wrong[] = SHA256;
    for (size_t i = 0; i < 64; i++) {
        char right = wrong[i];
        wrong[i] = right == '0' ? '1' : '0';
        assert_false(jk_signer_verify(signer, slice(wrong), parts));
        wrong[i] = right;
    }
    assert_true(jk_signer_verify(signer, slice(wrong), parts));
    jk_bytes moved[JK_SIGNED_PARTS] = {parts[1], parts[0], parts[2], parts[3]};
    assert_false(jk_signer_verify(signer, slice(wrong), moved));
    jk_signer_release(signer);
}

static void test_wrong_length(void **state)
{
    (void)state;
    jk_signer *signer;
    assert_int_equal(jk_signer_create("hmac-sha256", KEY, 4, &signer), 0);
    char longer[] = SHA256 "0";
    for (size_t size = 0; size <= 65; size++) {
        assert_int_equal(jk_signer_verify(signer, (jk_bytes){longer, size}, parts), size == 64);
    }
    assert_false(jk_signer_verify(signer, (jk_bytes){NULL, 0}, parts));
    jk_signer_release(signer);
}

static void test_schemes(void **state)
{
    (void)state;
    static const char *const bad[] = {"hmac-", "hmac-nothing", "sha256", "", "HMAC-sha256"};
    jk_signer *signer;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(jk_signer_create(bad[i], KEY, 4, &signer), -1);
        assert_null(signer);
    }
    jk_signer_release(NULL);
}

static void test_no_key(void **state)
{
    (void)state;
    jk_signer *signer;
    char hex[JK_SIGNATURE_SIZE] = "x";
    assert_int_equal(jk_signer_create("hmac-sha256", "", 0, &signer), 0);
    assert_int_equal(jk_signer_sign(signer, parts, hex), 0);
    assert_string_equal(hex, "");
    assert_true(jk_signer_verify(signer, slice(""), parts));
    jk_signer_release(signer);
}

/* Different in the digits that are kept, and spread over the chains as a digest is. */
static void numbered(unsigned number, char text[65])
{
    snprintf(text, 65, "%08x%024x%032x", number * 2654435761u, number, 0);
}

static void test_replay(void **state)
{
    (void)state;
    char text[65];
    jk_replay *replay = jk_replay_create();
    assert_non_null(replay);
    for (unsigned i = 0; i < 65536; i++) {
        numbered(i, text);
        assert_true(jk_replay_record(replay, slice(text)));
        assert_false(jk_replay_record(replay, slice(text)));
    }
    assert_true(jk_replay_record(replay, slice("")));
    assert_true(jk_replay_record(replay, slice("")));
    jk_replay_release(replay);
}

static void test_replay_forgets_the_oldest(void **state)
{
    (void)state;
    char text[65];
    jk_replay *replay = jk_replay_create();
    assert_non_null(replay);
    for (unsigned i = 0; i < 3 * 65536; i++) {
        numbered(i, text);
        assert_true(jk_replay_record(replay, slice(text)));
    }
    for (unsigned i = 2 * 65536; i < 3 * 65536; i++) {
        numbered(i, text);
        assert_false(jk_replay_record(replay, slice(text)));
    }
    numbered(65537, text);
    assert_true(jk_replay_record(replay, slice(text)));
    jk_replay_release(replay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_wrong_length),
        cmocka_unit_test(test_schemes),
        cmocka_unit_test(test_no_key),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_replay_forgets_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
