/* A kernel with the fake executor on a thread of this process, and a client for it over real sockets. */
#ifndef JK_HARNESS_H
#define JK_HARNESS_H

#include "fake_executor.h"
#include "jkernel/wire/wire.h"

#include <jansson.h>

#define WAIT 120000 /* ms after which a missing message is a failure */

typedef struct test_kernel {
    fake_executor fake;
    char path[64];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool ready, capture;
    char problem[512];
} test_kernel;

/* Write a connection file with chosen text; the path goes into `path` (64 bytes). */
void connection_file(const char *text, unsigned mode, char *path);
/* The text of a usual one: port 0 everywhere and this key. */
const char *connection_text(const char *key);

/* Start; fails the test when the server cannot be opened. */
void kernel_start(test_kernel *kernel, bool capture);
/* The same, with subshells. */
void kernel_start_subshells(test_kernel *kernel);
/* The same, with an executor that `prepare` changes before the server looks at it. */
void kernel_start_prepared(test_kernel *kernel, void (*prepare)(fake_executor *fake));
/* End the main loop and close the server. */
void kernel_stop(test_kernel *kernel);

typedef struct test_client {
    jk_config config;
    jk_signer *signer;
    jk_session session;
    void *context;
    void *sockets[JK_CHANNELS];
    jk_frames raw; /* the latest message received */
} test_client;

/* Connect all channels and wait for the welcome. */
void client_open(test_client *client, const char *path);
/* The same, but iopub is left to the caller. */
void client_open_quiet(test_client *client, const char *path);
/* The same, with the keys of the connection file. */
void client_open_encrypted(test_client *client, const char *path);
void client_subscribe(test_client *client, const char *topic);
void client_close(test_client *client);
/* One more socket of the client, which drops at its end what was not sent. Sends fail after WAIT: libzmq
 * takes the pipe of a refused link away, and without a limit they would wait for ever. */
void *client_socket(test_client *client, int type);

/* Send a request; its msg_id goes into `id` (64 bytes) unless NULL. */
void client_send(test_client *client, jk_channel channel, const char *type, const char *content, char *id);
/* Send a request with this JSON text as its whole header. */
void client_send_header(test_client *client, jk_channel channel, const char *header, const char *content);
/* The same for a client that may have been refused already: false when nothing can be sent for `ms`. */
bool client_offer(test_client *client, jk_channel channel, const char *header, const char *content, int ms);
/* execute_request with this code (JSON-escaped already) and more members, e.g. ",\"silent\":true". */
void client_execute(test_client *client, const char *code, const char *more, char *id);

typedef struct test_received {
    char type[64], parent_id[64], id[64];
    json_t *header, *parent, *metadata, *content;
} test_received;

/* Wait for a message. Returns false after `timeout_ms`. Checks signature and shape. Free with
 * received_clear(). */
bool client_receive(test_client *client, jk_channel channel, int timeout_ms, test_received *message);
void received_clear(test_received *message);
/* A text member of the content, "" when missing. */
const char *received_text(const test_received *message, const char *name);

/* Receive and demand a reply of this type to `id`. */
void client_expect(test_client *client, jk_channel channel, const char *type, const char *id,
                   test_received *message);
/* Receive on iopub and demand this type with this parent; for statuses `type` is "status:busy". */
void client_expect_iopub(test_client *client, const char *type, const char *id);
/* Read iopub until the idle of `id`; stdout text of `id` is collected in `text` (may be NULL), with its size.
 * Returns the number of stream messages. */
int client_until_idle(test_client *client, const char *id, char *text, size_t size);
/* Demand that nothing arrives for `ms`. */
void client_expect_silence(test_client *client, jk_channel channel, int ms);

/* Most programs talk to one kernel through one client: cmocka's set-up and tear-down for these. */
extern test_kernel the_kernel;
extern test_client the_client;
int set_up(void **state);
int set_up_captured(void **state); /* with file descriptors 1 and 2 captured */
int set_up_subshells(void **state);
int tear_down(void **state);
/* Demand a reply of this type and status to `id` on the shell channel. */
void expect_reply(const char *type, const char *id, const char *status);

long threads_count(void);
/* Wait until there are no more than so many: one that was joined may be listed for a moment more. */
void threads_settle(long most);
long descriptors_count(void);
double seconds_now(void);

#endif
