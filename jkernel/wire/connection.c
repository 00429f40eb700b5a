/* The connection file. It holds the secret that lets anyone run code as this user, so its mode is checked
 * before it is read, on the open descriptor. */
#include "jkernel/wire/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST (1 << 20)

static const char *const port_fields[JK_CHANNELS] = {"shell_port", "iopub_port", "stdin_port", "control_port",
                                                     "hb_port"};

const char *jk_channel_name(jk_channel channel)
{
    static const char *const names[JK_CHANNELS] = {"shell", "iopub", "stdin", "control", "heartbeat"};
    return names[channel];
}

static json_t *document_read(const char *path, char *problem, size_t problem_size)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &about) != 0) {
        snprintf(problem, problem_size, "cannot read the connection file %s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return NULL;
    }
    json_t *document = NULL;
    json_error_t error;
    if (!S_ISREG(about.st_mode) || about.st_size > FILE_MOST) {
        snprintf(problem, problem_size, "%s is not a connection file: it must be a regular file below 1 MiB",
                 path);
    } else if (about.st_mode & (S_IRWXG | S_IRWXO)) {
        snprintf(problem, problem_size,
                 "others may read or write the connection file %s, which holds the session's key; run: chmod "
                 "600 %s",
                 path, path);
    } else if (!(document = json_loadfd(fd, JSON_REJECT_DUPLICATES, &error))) {
        /* Without the parser's own words: they quote the text, which may be the key. */
        snprintf(problem, problem_size, "the connection file %s is not JSON: look at line %d, column %d",
                 path, error.line, error.column);
    } else if (!json_is_object(document)) {
        snprintf(problem, problem_size, "the connection file %s must hold a JSON object", path);
        json_decref(document);
        document = NULL;
    }
    close(fd);
    return document;
}

/* Copy a text field; `fallback` NULL makes it required. */
static int field_text(const jk_config *config, const char *name, const char *fallback, char *text,
                      size_t size, char *problem, size_t problem_size)
{
    const json_t *value = json_object_get(config->document, name);
    const char *found = value ? json_string_value(value) : fallback;
    if (!found) {
        snprintf(problem, problem_size, "the connection file %s needs the field \"%s\" with a text value",
                 config->path, name);
        return -1;
    }
    if (strlen(found) >= size) {
        snprintf(problem, problem_size,
                 "the field \"%s\" in the connection file %s is longer than %zu characters", name,
                 config->path, size - 1);
        return -1;
    }
    memcpy(text, found, strlen(found) + 1);
    return 0;
}

static int field_port(const jk_config *config, const char *name, int *port, char *problem,
                      size_t problem_size)
{
    const json_t *value = json_object_get(config->document, name);
    long long number = -1;
    if (json_is_integer(value)) {
        number = json_integer_value(value);
    } else if (json_is_string(value)) {
        const char *text = json_string_value(value);
        char *end;
        errno = 0;
        number = strtoll(text, &end, 10);
        if (*text < '0' || *text > '9' || *end || errno) number = -1;
    }
    if (number < 0 || number > 65535) {
        snprintf(problem, problem_size,
                 "the connection file %s needs the field \"%s\" with a port number from 0 to 65535",
                 config->path, name);
        return -1;
    }
    *port = (int)number;
    return 0;
}

static int config_key(jk_config *config, char *problem, size_t problem_size)
{
    const json_t *value = json_object_get(config->document, "key");
    if (!json_is_string(value)) {
        snprintf(problem, problem_size,
                 "the connection file %s needs the field \"key\" (an empty text turns signatures off)",
                 config->path);
        return -1;
    }
    config->key_size = json_string_length(value);
    config->key = malloc(config->key_size + 1);
    if (!config->key) {
        snprintf(problem, problem_size, "no memory for the connection file");
        return -1;
    }
    memcpy(config->key, json_string_value(value), config->key_size + 1);
    return 0;
}

static int config_curve(jk_config *config, char *problem, size_t problem_size)
{
    if (field_text(config, "curve_publickey", "", config->curve_public, JK_KEY_Z85, problem, problem_size) !=
            0 ||
        field_text(config, "curve_secretkey", "", config->curve_secret, JK_KEY_Z85, problem, problem_size) !=
            0) {
        return -1;
    }
    size_t public_size = strlen(config->curve_public), secret_size = strlen(config->curve_secret);
    if (public_size == 0 && secret_size == 0) return 0;
    if (public_size != JK_KEY_Z85 - 1 || secret_size != JK_KEY_Z85 - 1) {
        snprintf(
            problem, problem_size,
            "the connection file %s must give both curve_publickey and curve_secretkey, 40 characters each",
            config->path);
        return -1;
    }
    if (!zmq_has("curve")) {
        snprintf(problem, problem_size,
                 "the connection file %s asks for encryption, but this libzmq was built without CurveZMQ",
                 config->path);
        return -1;
    }
    return 0;
}

static int config_fill(jk_config *config, char *problem, size_t problem_size)
{
    char transport[16];
    if (field_text(config, "transport", "tcp", transport, sizeof transport, problem, problem_size) != 0 ||
        field_text(config, "ip", NULL, config->ip, sizeof config->ip, problem, problem_size) != 0 ||
        field_text(config, "signature_scheme", "hmac-sha256", config->scheme, sizeof config->scheme, problem,
                   problem_size) != 0) {
        return -1;
    }
    if (strcmp(transport, "tcp") != 0) {
        snprintf(problem, problem_size,
                 "transport \"%s\" is not supported; set \"transport\": \"tcp\" in the connection file %s",
                 transport, config->path);
        return -1;
    }
    for (int i = 0; i < JK_CHANNELS; i++) {
        if (field_port(config, port_fields[i], &config->ports[i], problem, problem_size) != 0) return -1;
    }
    if (config_key(config, problem, problem_size) != 0) return -1;
    return config_curve(config, problem, problem_size);
}

int jk_config_read(const char *path, jk_config *config, char *problem, size_t problem_size)
{
    memset(config, 0, sizeof *config);
    config->path = strdup(path);
    if (!config->path) {
        snprintf(problem, problem_size, "no memory for the connection file");
        return -1;
    }
    config->document = document_read(path, problem, problem_size);
    if (!config->document || config_fill(config, problem, problem_size) != 0) {
        jk_config_clear(config);
        return -1;
    }
    return 0;
}

static int file_write(int fd, const char *text)
{
    size_t size = strlen(text);
    while (size > 0) {
        ssize_t done = write(fd, text, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        text += done;
        size -= (size_t)done;
    }
    return fsync(fd);
}

int jk_config_write(const jk_config *config, char *problem, size_t problem_size)
{
    for (int i = 0; i < JK_CHANNELS; i++) {
        json_object_set_new(config->document, port_fields[i], json_integer(config->ports[i]));
    }
    int result = -1;
    size_t length = strlen(config->path) + 8;
    char *text = json_dumps(config->document, JSON_INDENT(2));
    char *beside = malloc(length);
    int fd = -1;
    if (text && beside) {
        snprintf(beside, length, "%s.XXXXXX", config->path);
        fd = mkostemp(beside, O_CLOEXEC); /* creates with mode 0600 */
    }
    if (fd >= 0) {
        result = file_write(fd, text);
        if (close(fd) != 0) result = -1;
        if (result == 0) result = rename(beside, config->path);
        if (result != 0) unlink(beside);
    }
    if (result != 0) {
        snprintf(problem, problem_size, "cannot write the chosen ports into %s: %s", config->path,
                 strerror(errno));
    }
    if (text) OPENSSL_cleanse(text, strlen(text));
    free(text);
    free(beside);
    return result == 0 ? 0 : -1;
}

void jk_config_clear(jk_config *config)
{
    if (config->key) OPENSSL_cleanse(config->key, config->key_size);
    free(config->key);
    free(config->path);
    json_decref(config->document);
    OPENSSL_cleanse(config, sizeof *config);
    memset(config, 0, sizeof *config);
}
