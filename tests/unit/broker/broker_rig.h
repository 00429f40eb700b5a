/* A broker in the test's own process. Its time stands still until the test moves it. */
#ifndef BROKER_RIG_H
#define BROKER_RIG_H

#include "broker/broker_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ALICE 60001 /* users without an account: their names are their numbers */
#define BOB   60002
#define CAROL 60003

/* A broker by a configuration in JSON, with ' for ". */
void rig_open(bk_broker *broker, const char *config);
void rig_close(bk_broker *broker);
/* A process that waits to be ended. */
pid_t rig_process(void);
void rig_kill(pid_t pid);
/* A connection of such a process. */
bk_client *rig_client(bk_broker *broker, uid_t uid);
/* Send a request, with ' for ", and end the turn. The answer, which must be the next packet; freed by the
 * rig. */
json_t *rig_ask(bk_broker *broker, bk_client *client, const char *format, ...) DRUPE_PRINTF(3, 4);
/* The next packet that waits for a client, or NULL; freed by the rig. */
json_t *rig_next(bk_client *client);
/* End a turn `seconds` later. */
void rig_later(bk_broker *broker, double seconds);
/* A text in an answer, "" if there is none. */
const char *rig_text(const json_t *answer, const char *key);
/* Ask, and check that the answer has this code ("": it is granted, "waiting": it waits); the id of lease or
 * ticket. */
const char *rig_lease(bk_broker *broker, bk_client *client, const char *code, const char *request);

#endif
