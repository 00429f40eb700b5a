/* The room of answers: what happens to a message that arrived. Some are answered here, on the thread that
 * owns the socket and without the language, so that they are answered while the language is stuck; the others
 * go to the room of requests.
 *
 * Owns: the names of cells, and whether a debugger was wanted. Locks: none.
 * Threads: io and control, each for its own channels. */
#ifndef JK_ANSWERS_ROOM_H
#define JK_ANSWERS_ROOM_H

#include "jkernel/server/control/control_room.h"
#include "jkernel/server/iopub/iopub_room.h"

#define JK_ABORT_SILENCE                                                                                     \
    2 /* ms without a message, after which the socket holds nothing older than a failure */
#define JK_ABORT_GRACE 20 /* ms at most */

/* --- cell_name.c --------------------------------------------------------------------------------------- */

#define JK_CELL_SEED   0xc70f6907u
#define JK_CELL_SUFFIX ".py"

typedef struct jk_answers {
    char cell_prefix[JK_CELL_NAME_SIZE - 20]; /* folder and slash: what the names of cells begin with */
    atomic_bool debugging; /* the executor has been given a debug_request: debug_request.c */
} jk_answers;

/* Choose the folder for the names of cells. After jk_session_open(). */
void jk_cell_names_open(jk_server *server);
uint32_t jk_cell_hash(const void *data, size_t size);

/* --- c_answers.c -----------------------------------------------------------------------------------------
 */

/* Answer on the socket of `channel`, which the calling thread owns. `content` is a JSON object. */
void jk_answer(jk_server *server, jk_channel channel, const jk_message *message, jk_bytes content);
/* Answer a request that C answers, between busy and idle: kernel_info, connect, interrupt, shutdown, usage
 * and those about subshells. Returns false for others. */
bool jk_answer_here(jk_server *server, jk_channel channel, const jk_message *message);

/* --- debug_request.c ----------------------------------------------------------------------------------- */

/* A debug_request has arrived on `channel`, whose socket the calling thread owns. Takes `message`. */
void jk_debug_request(jk_server *server, jk_channel channel, jk_message *message);

/* --- route.c ------------------------------------------------------------------------------------------- */

/* Read what waits in a ROUTER socket, at most `most` messages, and route each. Only by the socket's owner.
 * Returns how many. */
int jk_route_receive(jk_server *server, jk_channel channel, int most);

/* --- leaving.c: what iopub hands over ------------------------------------------------------------------ */

/* io thread: a reply and a question leave. */
extern const jk_leaving jk_answers_leaving;

#endif
