/* Bytes to messages and back: the connection file, the signature, the frames and the headers of the Jupyter
 * messaging protocol. No threads and no sockets of its own; everything that arrives is untrusted.
 *
 * On the wire a message is: identities | <IDS|MSG> | signature | header | parent header | metadata | content
 * | buffers. The four JSON frames are signed byte for byte; buffers are not. An incoming message is first
 * verified, then parsed, and only then remembered against replay.
 *
 * Strings: a `jk_bytes` is borrowed for the call, or as long as the object it came from.
 *
 * Source: Jupyter messaging protocol 5.6 (jupyter_client, "Messaging in Jupyter", "Making kernels"; JEP 66).
 */
#ifndef JK_WIRE_H
#define JK_WIRE_H

#include "drupe/status.h"
#include "jkernel/bytes.h"
#include "jkernel/wire/wire_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <zmq.h>

/* What every header, kernel_info and the kernelspec say. */
#define JK_PROTOCOL_VERSION "5.6"

/* --- The log -------------------------------------------------------------------------------------------- */

/* Append one line to the file named by DRUPE_LOG; without that variable, nothing. Never the terminal. Control
 * characters are replaced, so that what a client sent cannot forge lines. Any thread. */
void jk_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Record one line of what failed and what to do as the calling thread's drupe_error_last(), with control
 * characters replaced. Returns -1. */
int jk_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- Growing text --------------------------------------------------------------------------------------- */

/* Zeroed to begin with; its memory is that of wire_memory.h. Once an allocation fails, `failed` stays true
 * and appending does nothing. */
typedef struct jk_buffer {
    char *data;
    size_t size, capacity;
    bool failed;
} jk_buffer;

void jk_buffer_append(jk_buffer *buffer, const void *data, size_t size);
void jk_buffer_append_text(jk_buffer *buffer, const char *text);
/* Append a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void jk_buffer_append_json(jk_buffer *buffer, const char *text, size_t size);
void jk_buffer_clear(jk_buffer *buffer); /* free and zero */

/* Replace control characters, so that quoted text cannot add lines or steer a terminal. */
void jk_line_clean(char *line, size_t size);

/* --- The connection file -------------------------------------------------------------------------------- */

typedef enum jk_channel { JK_SHELL, JK_IOPUB, JK_STDIN, JK_CONTROL, JK_HEARTBEAT, JK_CHANNELS } jk_channel;

const char *jk_channel_name(jk_channel channel); /* "shell", "iopub", "stdin", "control", "heartbeat" */

#define JK_KEY_Z85 41  /* a CurveZMQ key as text, with its NUL */
#define JK_IP_SIZE 128 /* an address or the start of a socket's path, with its NUL */

typedef enum jk_transport { JK_TCP, JK_IPC } jk_transport;

typedef struct jk_config {
    char *path; /* jk_config_read() makes it absolute */
    jk_transport transport;
    char ip[JK_IP_SIZE];    /* ipc: absolute; the sockets are at `{ip}-{port}` */
    int ports[JK_CHANNELS]; /* 0: choose one when binding, then call jk_config_write() */
    char scheme[32];        /* "hmac-sha256" */
    char *key;              /* secret; empty: messages are not signed */
    size_t key_size;
    char curve_public[JK_KEY_Z85], curve_secret[JK_KEY_Z85]; /* empty: no encryption */
    char *kernel_id; /* of a registration file: the ports go to the launcher; NULL: a connection file */
    char registration_ip[JK_IP_SIZE];
    int registration_port;
    bool own_file;           /* `path` is a file that jk_config_write() has made */
    struct json_t *document; /* the file as read, for jk_config_write() */
} jk_config;

/* Read and check a connection file, or the registration file that a launcher gives instead (JEP 66). Refuses
 * one that anybody but its owner may read or write; waits up to a second for one that is half written.
 * Returns 0, or -1 by jk_fail(); `config` is then empty. Release with
 * jk_config_clear(). */
int jk_config_read(const char *path, jk_config *config);

#define JK_CONFIG_CUT 1
/* The same for the text of the file at `path`. Returns JK_CONFIG_CUT, also by jk_fail(), when the text ends
 * too early. */
int jk_config_parse(const char *path, const char *text, size_t size, jk_config *config);

/* Put the ports of `config` into its file: a new file of mode 0600 takes the place of the old one at once.
 * All other fields stay. After a registration file: into a connection file of our own, for other clients, in
 * Jupyter's runtime folder; `path` is then its path. Returns 0, or -1 by jk_fail(). */
int jk_config_write(jk_config *config);

void jk_config_clear(jk_config *config); /* also wipes the key */

#define JK_ENDPOINT_SIZE 192
/* Where a socket is, for zmq_bind() and zmq_connect(); port 0 is "any". */
void jk_endpoint_format(jk_transport transport, const char *ip, int port, char endpoint[JK_ENDPOINT_SIZE]);

/* --- Registration with a launcher ----------------------------------------------------------------------- */

/* Immutable after creation: any number of threads may use one at a time. */
typedef struct jk_signer jk_signer;
struct jk_frames;

/* Send the signed message with kernel_id and ports on a DEALER socket. Returns 0, or -1 with errno. */
int jk_registration_send(const jk_config *config, const jk_signer *signer, void *socket);
/* Whether `frames` are the launcher's acknowledgement: one JSON frame under a right signature. */
bool jk_registration_acknowledged(const struct jk_frames *frames, const jk_signer *signer);

/* --- The signature -------------------------------------------------------------------------------------- */

#define JK_SIGNATURE_SIZE 129 /* the longest digest in hexadecimal, and NUL */

/* `scheme` is "hmac-<digest>" with any digest that OpenSSL knows; an empty key means no signatures. Returns
 * 0, or -1 when the scheme is unknown or memory is short. */
int jk_signer_create(const char *scheme, const void *key, size_t key_size, jk_signer **signer);
void jk_signer_release(jk_signer *signer); /* NULL-safe */

/* Write the signature in lower-case hexadecimal; empty without a key. Returns its length, or -1. */
int jk_signer_sign(const jk_signer *signer, const jk_bytes parts[JK_SIGNED_PARTS], char *hex);

/* Whether `signature` belongs to the parts. Its length is checked first, then it is compared in constant
 * time. Without a key everything is accepted. */
bool jk_signer_verify(const jk_signer *signer, jk_bytes signature, const jk_bytes parts[JK_SIGNED_PARTS]);

/* The last 65,536 signatures that were accepted. Any thread. */
typedef struct jk_replay jk_replay;

jk_replay *jk_replay_create(void);         /* NULL: no memory */
void jk_replay_release(jk_replay *replay); /* NULL-safe */
/* Remember a verified signature. Returns false when it was there already: the message is a replay. An empty
 * signature (no key) is never remembered. */
bool jk_replay_record(jk_replay *replay, jk_bytes signature);

/* --- Frames --------------------------------------------------------------------------------------------- */

/* One multipart message as received. Zeroed to begin with. */
typedef struct jk_frames {
    zmq_msg_t *items;
    size_t count, capacity;
} jk_frames;

#define JK_FRAMES_MOST 1024 /* a longer message is read to its end and dropped */

/* Take one message from `socket` without waiting. Returns 1, 0 when there is none, or -1 with errno: EPROTO
 * for a message that was too long and is gone, ENOMEM, or what zmq_msg_recv() reports. */
int jk_frames_receive(void *socket, jk_frames *frames);
/* Move `frame` behind the others. Returns 0, or -1 with errno: EPROTO when there are too many, ENOMEM. */
int jk_frames_add(jk_frames *frames, zmq_msg_t *frame);
void jk_frames_clear(jk_frames *frames); /* close and zero */

typedef struct jk_message {
    jk_frames frames;
    size_t identities;               /* frames before the delimiter */
    char *id, *type;                 /* from the header */
    char *subshell;                  /* header.subshell_id, or NULL */
    jk_bytes parts[JK_SIGNED_PARTS]; /* as received; `{}` where the sender wrote null */
} jk_message;

/* Verify, parse, record. `frames` are taken in every case and left empty. On failure returns NULL and a
 * constant text in `problem`. */
jk_message *jk_message_parse(jk_frames *frames, const jk_signer *signer, jk_replay *replay,
                             const char **problem);
void jk_message_release(jk_message *message); /* NULL-safe */

size_t jk_message_buffer_count(const jk_message *message);
jk_bytes jk_message_buffer(const jk_message *message, size_t index);
jk_bytes jk_message_identity(const jk_message *message, size_t index);

/* Whether the content has the member `name` with the value true. */
bool jk_message_flag(const jk_message *message, const char *name);
/* The content's member `name` when it is text, malloc'ed; NULL when it is not there or memory is out. */
char *jk_message_text(const jk_message *message, const char *name);
/* When its sender made it, as the header says. False: the header does not say it. */
bool jk_message_date(const jk_message *message, struct timespec *date);
/* The msg_id of the message that this one answers, malloc'ed; NULL when it names none or memory is out. */
char *jk_message_parent_id(const jk_message *message);

/* --- Sending -------------------------------------------------------------------------------------------- */

/* Who we are: one per process, in every header. */
typedef struct jk_session {
    char id[33];
    long pid;
    atomic_ulong count;
} jk_session;

int jk_session_open(jk_session *session); /* 0, or -1: no random numbers */

#define JK_DATE_SIZE 32
/* ISO 8601 in UTC with microseconds: "2026-01-31T12:00:00.000001Z". */
void jk_date_format(struct timespec date, char text[JK_DATE_SIZE]);
/* The other way, from any offset to UTC. False: the text is no such date, or does not tell its offset. */
bool jk_date_parse(const char *text, struct timespec *date);

/* Append a new header to `header`. Returns the number of the message: later ones have higher numbers. Any
 * thread. */
unsigned long jk_session_header(jk_session *session, const char *type, struct timespec date,
                                jk_buffer *header);
/* The number of our message that has this msg_id; 0: it is none of ours. */
unsigned long jk_session_number(const jk_session *session, const char *id);

/* One outgoing message. Empty JSON parts are sent as `{}`. */
typedef struct jk_envelope {
    const jk_message *to; /* its identities go first; or NULL */
    jk_bytes topic;       /* sent first when `to` is NULL */
    jk_bytes header, parent, metadata, content;
    const jk_bytes *buffers;
    size_t nbuffers;
    /* When set, the content is *taken*: handed to the transport without a copy and released through this, on
     * any thread, with `hint`; on failure too. */
    void (*content_free)(void *data, void *hint);
    void *hint;
} jk_envelope;

/* The four parts that are signed, and their signature: as jk_signer_sign(). */
int jk_envelope_sign(const jk_envelope *envelope, const jk_signer *signer, jk_bytes parts[JK_SIGNED_PARTS],
                     char *signature);

/* A message that is signed and ready to go. */
typedef struct jk_parcel {
    zmq_msg_t *frames;
    size_t count;
} jk_parcel;

/* Make and sign the frames. Returns 0, or -1 when memory is short; the parcel is then empty. */
int jk_parcel_pack(jk_parcel *parcel, const jk_envelope *envelope, const jk_signer *signer);
/* Send without waiting and empty the parcel. A peer that has gone is no error. Returns 0, or -1 with errno.
 */
int jk_parcel_send(jk_parcel *parcel, void *socket);

/* Pack and send. */
int jk_envelope_send(const jk_envelope *envelope, void *socket, const jk_signer *signer);

#endif
