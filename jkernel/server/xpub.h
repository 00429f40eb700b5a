/* iopub with encryption: a socket of libzmq's, which alone speaks CURVE. What each subscriber has not taken
 * is not to be known here, only what all have not: see xpub.c. Inside iopub.c and xpub.c. */
#ifndef JK_XPUB_H
#define JK_XPUB_H

#include "jkernel/server/server.h"

#define JK_COPIED_BELOW 1024 /* bytes of content that are cheaper to copy than to hand over */

/* Send on the socket. `content` is taken when it is large. Returns 0, or -1 with errno. */
int jk_xpub_send(jk_server *server, jk_envelope *envelope, jk_buffer *content);
/* ms that stream text at the head of the queue must wait because too much is in flight. Holds outbox.lock. */
int jk_xpub_stall(jk_outbox *outbox, jk_entry *head);
/* Take subscriptions from the socket and welcome each. */
void jk_xpub_receive(jk_server *server);
/* The welcome of a subscriber, whose own filter lets it through. */
jk_envelope jk_welcome_make(jk_server *server, jk_slice topic, jk_buffer *header, jk_buffer *content);

#endif
