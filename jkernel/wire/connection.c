/* The connection file. It holds the secret that lets anyone run code as this user: messages never quote it.
 */
#include "jkernel/wire/config.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* A launcher may still be writing the file: read again, this often and after so many ms. */
#define CUT_TRIES 50
#define CUT_PAUSE 20

#define TCP_IP_MOST 63

const char *const jk_port_fields[JK_CHANNELS] = {"shell_port", "iopub_port", "stdin_port", "control_port",
                                                 "hb_port"};

const char *jk_channel_name(jk_channel channel)
{
    static const char *const names[JK_CHANNELS] = {"shell", "iopub", "stdin", "control", "heartbeat"};
    return names[channel];
}

int jk_field_text(const jk_config *config, const char *name, const char *fallback, char *text, size_t size)
{
    const json_t *value = json_object_get(config->document, name);
    const char *found = value ? json_string_value(value) : fallback;
    if (!found)
        return jk_fail("the connection file %s needs the field \"%s\" with a text value", config->path, name);
    if (strlen(found) >= size)
        return jk_fail("the field \"%s\" in the connection file %s is longer than %zu characters", name,
                       config->path, size - 1);
    memcpy(text, found, strlen(found) + 1);
    return 0;
}

int jk_field_port(const jk_config *config, const char *name, int *port)
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
    if (number < 0 || number > 65535)
        return jk_fail("the connection file %s needs the field \"%s\" with a port number from 0 to 65535",
                       config->path, name);
    *port = (int)number;
    return 0;
}

static int config_key(jk_config *config)
{
    const json_t *value = json_object_get(config->document, "key");
    if (!json_is_string(value))
        return jk_fail("the connection file %s needs the field \"key\" (an empty text turns signatures off)",
                       config->path);
    config->key_size = json_string_length(value);
    config->key = malloc(config->key_size + 1);
    if (!config->key) return jk_fail("no memory for the connection file");
    memcpy(config->key, json_string_value(value), config->key_size + 1);
    return 0;
}

static int config_curve(jk_config *config)
{
    if (jk_field_text(config, "curve_publickey", "", config->curve_public, JK_KEY_Z85) != 0 ||
        jk_field_text(config, "curve_secretkey", "", config->curve_secret, JK_KEY_Z85) != 0) {
        return -1;
    }
    size_t public_size = strlen(config->curve_public), secret_size = strlen(config->curve_secret);
    if (public_size == 0 && secret_size == 0) return 0;
    if (public_size != JK_KEY_Z85 - 1 || secret_size != JK_KEY_Z85 - 1)
        return jk_fail(
            "the connection file %s must give both curve_publickey and curve_secretkey, 40 characters each",
            config->path);
    if (!zmq_has("curve"))
        return jk_fail(
            "the connection file %s asks for encryption, but this libzmq was built without CurveZMQ",
            config->path);
    /* Keys that do not belong together would be a kernel that nobody can talk to. */
    uint8_t raw[JK_KEY_Z85];
    char derived[JK_KEY_Z85] = "";
    if (!zmq_z85_decode(raw, config->curve_secret) || !zmq_z85_decode(raw, config->curve_public) ||
        zmq_curve_public(derived, config->curve_secret) != 0 || strcmp(derived, config->curve_public) != 0) {
        jk_fail("curve_publickey and curve_secretkey in the connection file %s are not a pair of Z85 keys; "
                "make them with zmq_curve_keypair()",
                config->path);
        OPENSSL_cleanse(raw, sizeof raw);
        return -1;
    }
    OPENSSL_cleanse(raw, sizeof raw);
    return 0;
}

void jk_endpoint_format(jk_transport transport, const char *ip, int port, char endpoint[JK_ENDPOINT_SIZE])
{
    bool v6 = strchr(ip, ':') != NULL;
    char number[16] = "*";
    if (port) snprintf(number, sizeof number, "%d", port);
    if (transport == JK_IPC) {
        snprintf(endpoint, JK_ENDPOINT_SIZE, "ipc://%s-%s", ip, number);
    } else {
        snprintf(endpoint, JK_ENDPOINT_SIZE, "tcp://%s%s%s:%s", v6 ? "[" : "", ip, v6 ? "]" : "", number);
    }
}

static int config_transport(jk_config *config)
{
    char transport[16];
    if (jk_field_text(config, "transport", "tcp", transport, sizeof transport) != 0) {
        return -1;
    }
    config->transport = strcmp(transport, "ipc") == 0 ? JK_IPC : JK_TCP;
    if (config->transport == JK_IPC || strcmp(transport, "tcp") == 0) return 0;
    return jk_fail(
        "transport \"%s\" is not supported; set \"transport\" to \"tcp\" or \"ipc\" in the connection "
        "file %s",
        transport, config->path);
}

/* A relative path would lead elsewhere once a cell has changed the folder. */
static int path_absolute(const jk_config *config, const char *name, char path[JK_IP_SIZE])
{
    static const int longest = sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof "-65535";
    char folder[JK_IP_SIZE] = "", joined[2 * JK_IP_SIZE + 1];
    if (path[0] == '\0' || path[0] == '@')
        return jk_fail("the field \"%s\" in the connection file %s must be a path when the transport is ipc",
                       name, config->path);
    if (path[0] != '/' && !getcwd(folder, sizeof folder)) folder[0] = '\0';
    int length = snprintf(joined, sizeof joined, "%s%s%s", folder, folder[0] ? "/" : "", path);
    if (length > longest || (path[0] != '/' && !folder[0]))
        return jk_fail(
            "the field \"%s\" in the connection file %s makes a path of %d characters, and Unix sockets "
            "allow %d: use a folder with a shorter path, with Jupyter by setting JUPYTER_RUNTIME_DIR",
            name, config->path, length, longest);
    memcpy(path, joined, (size_t)length + 1);
    return 0;
}

int jk_field_address(const jk_config *config, const char *name, const char *fallback, char ip[JK_IP_SIZE])
{
    size_t size = config->transport == JK_IPC ? JK_IP_SIZE : TCP_IP_MOST + 1;
    if (jk_field_text(config, name, fallback, ip, size) != 0) return -1;
    if (config->transport == JK_IPC) return path_absolute(config, name, ip);
    return 0;
}

static int config_fill(jk_config *config)
{
    if (config_transport(config) != 0 ||
        jk_field_text(config, "signature_scheme", "hmac-sha256", config->scheme, sizeof config->scheme) !=
            0 ||
        config_key(config) != 0 || config_curve(config) != 0) {
        return -1;
    }
    if (jk_registration_found(config)) return jk_registration_fill(config);
    if (jk_field_address(config, "ip", NULL, config->ip) != 0) return -1;
    for (int i = 0; i < JK_CHANNELS; i++) {
        if (jk_field_port(config, jk_port_fields[i], &config->ports[i]) != 0) return -1;
    }
    return 0;
}

int jk_config_parse(const char *path, const char *text, size_t size, jk_config *config)
{
    json_error_t error;
    memset(config, 0, sizeof *config);
    config->path = strdup(path);
    config->document = config->path ? json_loadb(text, size, JSON_REJECT_DUPLICATES, &error) : NULL;
    int result = -1;
    if (!config->path) {
        jk_fail("no memory for the connection file");
    } else if (!config->document) {
        /* Without the parser's own words: they quote the text, which may be the key. */
        bool cut = json_error_code(&error) == json_error_premature_end_of_input;
        jk_fail("the connection file %s is %s: look at line %d, column %d", path,
                cut ? "JSON that ends too early" : "not JSON", error.line, error.column);
        if (cut) result = JK_CONFIG_CUT;
    } else if (!json_is_object(config->document)) {
        jk_fail("the connection file %s must hold a JSON object", path);
    } else {
        result = config_fill(config);
    }
    if (result != 0) jk_config_clear(config);
    return result;
}

/* A cell may change the folder, and the file has neighbours that are removed at the end. */
static int config_settle(jk_config *config)
{
    if (config->path[0] == '/') return 0;
    char *absolute = realpath(config->path, NULL);
    if (!absolute) {
        jk_fail("cannot find the connection file %s: %s", config->path, strerror(errno));
        jk_config_clear(config);
        return -1;
    }
    free(config->path);
    config->path = absolute;
    return 0;
}

int jk_config_read(const char *path, jk_config *config)
{
    const struct timespec pause = {.tv_nsec = CUT_PAUSE * 1000000};
    memset(config, 0, sizeof *config);
    for (int turn = 0;; turn++) {
        char *text = NULL;
        size_t size = 0;
        if (jk_file_load(path, &text, &size) != 0) return -1;
        int result = jk_config_parse(path, text, size, config);
        jk_file_forget(text, size);
        if (result == 0) return config_settle(config);
        if (result != JK_CONFIG_CUT || turn == CUT_TRIES) return -1;
        nanosleep(&pause, NULL);
    }
}

int jk_config_write(jk_config *config)
{
    int result = config->kernel_id ? jk_registration_move(config) : 0;
    for (int i = 0; result == 0 && i < JK_CHANNELS; i++) {
        json_object_set_new(config->document, jk_port_fields[i], json_integer(config->ports[i]));
    }
    char *text = result == 0 ? json_dumps(config->document, JSON_INDENT(2)) : NULL;
    size_t size = text ? strlen(text) : 0;
    if (!text || jk_file_store(config->path, text, size) != 0) {
        jk_fail("cannot write the chosen ports into %s: %s", config->path, strerror(errno));
        result = -1;
    }
    config->own_file = result == 0 && config->kernel_id;
    jk_file_forget(text, size);
    return result;
}

void jk_config_clear(jk_config *config)
{
    if (config->key) OPENSSL_cleanse(config->key, config->key_size);
    free(config->key);
    free(config->kernel_id);
    free(config->path);
    json_decref(config->document);
    OPENSSL_cleanse(config, sizeof *config);
    memset(config, 0, sizeof *config);
}
