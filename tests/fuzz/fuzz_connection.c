/* A connection file or registration file: any text is refused with one line that does not show the key, or
 * gives a configuration that can be bound, written and read again. */
#include "fuzz.h"

#include <string.h>
#include <unistd.h>

static void problem_check(const char *problem)
{
    size_t length = strlen(problem);
    FUZZ_CHECK(length > 20 && length < 511 && !strchr(problem, '\n'));
}

static void config_check(const jk_config *config)
{
    char endpoint[JK_ENDPOINT_SIZE];
    FUZZ_CHECK(config->path && config->key && strlen(config->key) == config->key_size && config->document);
    FUZZ_CHECK(config->transport == JK_IPC || strlen(config->ip) < 64);
    for (int i = 0; i < JK_CHANNELS; i++) {
        FUZZ_CHECK(config->ports[i] >= 0 && config->ports[i] <= 65535);
        jk_endpoint_format(config->transport, config->ip, config->ports[i], endpoint);
        /* The path of a Unix socket has 107 bytes. */
        if (config->transport == JK_IPC) FUZZ_CHECK(endpoint[6] == '/' && strlen(endpoint) <= 6 + 107);
    }
    FUZZ_CHECK(!config->curve_secret[0] == !config->curve_public[0]);
    jk_signer *signer = NULL;
    jk_signer_create(config->scheme, config->key, config->key_size, &signer);
    jk_signer_release(signer);
}

/* Write the file with other ports, and read the same back. */
static void write_check(jk_config *config)
{
    jk_config again;
    for (int i = 0; i < JK_CHANNELS; i++) config->ports[i] = 1000 + i;
    FUZZ_CHECK(jk_config_write(config) == 0);
    FUZZ_CHECK(jk_config_read(config->path, &again) == 0);
    FUZZ_CHECK(memcmp(again.ports, config->ports, sizeof again.ports) == 0);
    FUZZ_CHECK(strcmp(again.ip, config->ip) == 0 && strcmp(again.scheme, config->scheme) == 0);
    FUZZ_CHECK(again.transport == config->transport && strcmp(again.key, config->key) == 0);
    FUZZ_CHECK(strcmp(again.curve_secret, config->curve_secret) == 0 && !again.kernel_id);
    jk_config_clear(&again);
    unlink(config->path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    jk_config config;
    setenv("JUPYTER_RUNTIME_DIR", "/dev/shm", 1);
    snprintf(path, sizeof path, "/dev/shm/fuzz-%ld.json", (long)getpid());
    int result = jk_config_parse(path, (const char *)data, size, &config);
    FUZZ_CHECK(result == 0 || result == -1 || result == JK_CONFIG_CUT);
    if (result != 0) {
        problem_check(drupe_error_last()->text);
        FUZZ_CHECK(!config.key && !config.document && !config.path);
        return 0;
    }
    config_check(&config);
    write_check(&config);
    jk_config_clear(&config);
    return 0;
}
