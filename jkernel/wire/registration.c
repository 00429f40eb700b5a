/* The registration file and the handshake that it asks for: the kernel chooses its ports and tells them to
 * the launcher in a message that is not a Jupyter message, only a signed JSON text. */
#include "base/file.h"
#include "jkernel/wire/config.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_MOST 200

bool jk_registration_found(const jk_config *config)
{
    return json_object_get(config->document, "registration_port") &&
           !json_object_get(config->document, jk_port_fields[JK_SHELL]);
}

int jk_registration_fill(jk_config *config)
{
    char id[ID_MOST + 1];
    if (jk_field_text(config, "kernel_id", NULL, id, sizeof id) != 0 ||
        jk_field_address(config, "registration_ip", NULL, config->registration_ip) != 0 ||
        jk_field_port(config, "registration_port", &config->registration_port) != 0 ||
        /* Not in the specification, but some launchers say where to bind. */
        jk_field_address(config, "ip", config->registration_ip, config->ip) != 0) {
        return -1;
    }
    if (config->registration_port == 0 || id[0] == '\0')
        return jk_fail("the registration file %s needs a \"registration_port\" above 0 and a \"kernel_id\"",
                       config->path);
    config->kernel_id = strdup(id);
    if (!config->kernel_id) jk_fail("no memory for the registration file");
    return config->kernel_id ? 0 : -1;
}

/* --- Our own connection file ------------------------------------------------------------------------------
 */

/* Jupyter's runtime folder, made when it is not there. */
static void runtime_folder(char *folder, size_t size)
{
    const char *runtime = getenv("JUPYTER_RUNTIME_DIR"), *data = getenv("JUPYTER_DATA_DIR");
    const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (runtime && *runtime) {
        snprintf(folder, size, "%s", runtime);
    } else if (data && *data) {
        snprintf(folder, size, "%s/runtime", data);
    } else if (xdg && *xdg) {
        snprintf(folder, size, "%s/jupyter/runtime", xdg);
    } else {
        snprintf(folder, size, "%s/.local/share/jupyter/runtime", home ? home : "");
    }
    (void)drupe_folders_make(folder); /* what fails here shows when the file is written */
}

static char *own_path(const char *kernel_id)
{
    char folder[4096], *path = NULL;
    runtime_folder(folder, sizeof folder);
    if (asprintf(&path, "%s/kernel-%s.json", folder, kernel_id) < 0) return NULL;
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    for (char *c = path + strlen(folder) + 1; *c; c++) {
        if (!strchr(plain, *c)) *c = '_';
    }
    return path;
}

int jk_registration_move(jk_config *config)
{
    json_t *document =
        json_pack("{s:s, s:s, s:s, s:s%}", "transport", config->transport == JK_IPC ? "ipc" : "tcp", "ip",
                  config->ip, "signature_scheme", config->scheme, "key", config->key, config->key_size);
    char *path = own_path(config->kernel_id);
    if (!document || !path) {
        json_decref(document);
        free(path);
        errno = ENOMEM;
        return -1;
    }
    if (config->curve_secret[0]) {
        json_object_set_new(document, "curve_publickey", json_string(config->curve_public));
        json_object_set_new(document, "curve_secretkey", json_string(config->curve_secret));
    }
    json_decref(config->document);
    free(config->path);
    config->document = document;
    config->path = path;
    return 0;
}

/* --- The messages -----------------------------------------------------------------------------------------
 */

/* The message has one part; nothing is what the others add to the digest. */
static int content_sign(const jk_signer *signer, jk_bytes content, char *hex)
{
    jk_bytes parts[JK_SIGNED_PARTS] = {content};
    return jk_signer_sign(signer, parts, hex);
}

static void content_fill(const jk_config *config, jk_buffer *content)
{
    jk_buffer_append_text(content, "{\"kernel_id\":");
    jk_buffer_append_json(content, config->kernel_id, strlen(config->kernel_id));
    for (int i = 0; i < JK_CHANNELS; i++) {
        char field[64];
        snprintf(field, sizeof field, ",\"%s\":\"%d\"", jk_port_fields[i], config->ports[i]);
        jk_buffer_append_text(content, field);
    }
    jk_buffer_append(content, "}", 1);
}

int jk_registration_send(const jk_config *config, const jk_signer *signer, void *socket)
{
    char hex[JK_SIGNATURE_SIZE];
    jk_buffer content = {0};
    content_fill(config, &content);
    int size = content.failed ? -1 : content_sign(signer, (jk_bytes){content.data, content.size}, hex);
    int result = -1;
    errno = ENOMEM;
    if (size >= 0 && zmq_send(socket, "<IDS|MSG>", 9, ZMQ_SNDMORE) >= 0 &&
        zmq_send(socket, hex, (size_t)size, ZMQ_SNDMORE) >= 0 &&
        zmq_send(socket, content.data, content.size, 0) >= 0) {
        result = 0;
    }
    jk_buffer_clear(&content);
    return result;
}

bool jk_registration_acknowledged(const jk_frames *frames, const jk_signer *signer)
{
    if (frames->count < 3) return false;
    jk_bytes last[3]; /* delimiter, signature, content; launchers may put identities before */
    for (size_t i = 0; i < 3; i++) {
        zmq_msg_t *frame = &frames->items[frames->count - 3 + i];
        last[i] = (jk_bytes){zmq_msg_data(frame), zmq_msg_size(frame)};
    }
    jk_bytes parts[JK_SIGNED_PARTS] = {last[2]};
    return last[0].size == 9 && memcmp(last[0].data, "<IDS|MSG>", 9) == 0 &&
           jk_signer_verify(signer, last[1], parts);
}
