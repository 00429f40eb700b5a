/* Shells beside the main one (JEP 91): a list of inboxes. Everything else of them, from the abort of queued
 * cells to the busy that is said again, is what the main shell does.
 *
 * A subshell is made at once, before its thread runs: what is sent to it waits in its inbox. Ending one
 * closes the inbox; the struct lives until the last reply that passes through it. */
#include "jkernel/server/requests/requests_room.h"

#include <stdlib.h>
#include <string.h>

#define DELETED_REASON "the subshell was deleted before it came to this request"
#define CLOSING_REASON "the kernel is shutting down"

/* Returns whether it was in the list; its reference is the caller's then. */
static bool list_remove(jk_subshells *list, jk_subshell *subshell)
{
    pthread_mutex_lock(&list->lock);
    jk_subshell **link = &list->first;
    while (*link && *link != subshell) link = &(*link)->next;
    if (!*link && list->debugger == subshell) link = &list->debugger;
    bool found = *link != NULL;
    if (found) *link = subshell->next;
    pthread_mutex_unlock(&list->lock);
    return found;
}

void jk_subshell_end(jk_subshell *subshell, const char *why)
{
    bool listed = list_remove(&subshell->server->requests->subshells, subshell);
    jk_requests_refuse(jk_inbox_close(&subshell->inbox), why);
    jk_inbox_signal(&subshell->inbox);
    if (listed) jk_subshell_release(subshell);
}

jk_subshell *jk_subshell_find(jk_server *server, const char *id)
{
    jk_subshells *list = &server->requests->subshells;
    pthread_mutex_lock(&list->lock);
    jk_subshell *subshell = list->first;
    while (subshell && strcmp(subshell->id, id) != 0) subshell = subshell->next;
    jk_subshell_retain(subshell);
    pthread_mutex_unlock(&list->lock);
    return subshell;
}

unsigned jk_subshells_made(jk_server *server)
{
    return atomic_load(&server->requests->subshells.made);
}

void jk_subshells_close(jk_server *server)
{
    jk_subshells *list = &server->requests->subshells;
    jk_subshell *subshell;
    do {
        pthread_mutex_lock(&list->lock);
        list->closed = true;
        subshell = jk_subshell_retain(list->first);
        pthread_mutex_unlock(&list->lock);
        if (subshell) jk_subshell_end(subshell, CLOSING_REASON);
        jk_subshell_release(subshell);
    } while (subshell);
}

/* --- The debugger's ----------------------------------------------------------------------------------------
 */

jk_subshell *jk_debugger_shell(jk_server *server)
{
    jk_subshells *list = &server->requests->subshells;
    const jk_executor *executor = server->executor;
    pthread_mutex_lock(&list->lock);
    jk_subshell *made = list->debugger || list->closed ? NULL : jk_subshell_create(server);
    if (made && executor->debugger_open(executor->self, made) == 0) {
        list->debugger = jk_subshell_retain(made); /* its thread cannot end it before the lock is free */
        made = NULL;
    }
    jk_subshell *found = jk_subshell_retain(list->debugger);
    pthread_mutex_unlock(&list->lock);
    jk_subshell_release(made);
    return found;
}

void jk_server_end_shells(jk_server *server)
{
    jk_subshells *list = &server->requests->subshells;
    jk_subshells_close(server);
    pthread_mutex_lock(&list->lock);
    jk_subshell *debugger = jk_subshell_retain(list->debugger);
    pthread_mutex_unlock(&list->lock);
    if (debugger) jk_subshell_end(debugger, CLOSING_REASON);
    jk_subshell_release(debugger);
}

/* --- Requests about them -----------------------------------------------------------------------------------
 */

/* Behind the others: the list is in the order of creation. */
static bool list_add(jk_subshells *list, jk_subshell *subshell)
{
    pthread_mutex_lock(&list->lock);
    bool open = !list->closed;
    jk_subshell **link = &list->first;
    while (*link) link = &(*link)->next;
    if (open) {
        *link = jk_subshell_retain(subshell);
        subshell->number = atomic_fetch_add(&list->made, 1) + 1;
    }
    pthread_mutex_unlock(&list->lock);
    return open;
}

static void answer_create(jk_server *server, jk_buffer *content)
{
    const jk_executor *executor = server->executor;
    jk_subshell *subshell = jk_subshell_create(server);
    if (!subshell || !list_add(&server->requests->subshells, subshell)) {
        jk_subshell_release(subshell);
        jk_error_content(content, "no memory for a subshell, or the kernel is shutting down");
        return;
    }
    char id[sizeof subshell->id];
    memcpy(id, subshell->id, sizeof id);
    if (executor->subshell_open(executor->self, subshell) != 0) { /* else `subshell` is taken */
        jk_subshell_end(subshell, CLOSING_REASON);                /* drops the list's reference */
        jk_subshell_release(subshell); /* NOLINT(clang-analyzer-unix.Malloc): ours */
        jk_error_content(content, "the system has no thread for a subshell");
        return;
    }
    jk_buffer_append_text(content, "{\"status\":\"ok\",\"subshell_id\":\"");
    jk_buffer_append_text(content, id);
    jk_buffer_append_text(content, "\"}");
}

static void answer_delete(jk_server *server, const jk_message *message, jk_buffer *content)
{
    char *id = jk_message_text(message, "subshell_id");
    jk_subshell *subshell = id ? jk_subshell_find(server, id) : NULL;
    free(id);
    if (!subshell) {
        jk_error_content(content, "there is no subshell with this subshell_id");
        return;
    }
    jk_subshell_end(subshell, DELETED_REASON); /* drops the list's reference */
    jk_subshell_release(subshell); /* NOLINT(clang-analyzer-unix.Malloc): the one of jk_subshell_find() */
    jk_buffer_append_text(content, "{\"status\":\"ok\"}");
}

static void answer_list(jk_server *server, jk_buffer *content)
{
    jk_subshells *list = &server->requests->subshells;
    jk_buffer_append_text(content, "{\"status\":\"ok\",\"subshell_id\":[");
    pthread_mutex_lock(&list->lock);
    for (const jk_subshell *each = list->first; each; each = each->next) {
        jk_buffer_append_text(content, each == list->first ? "\"" : ",\"");
        jk_buffer_append_text(content, each->id);
        jk_buffer_append_text(content, "\"");
    }
    pthread_mutex_unlock(&list->lock);
    jk_buffer_append_text(content, "]}");
}

void jk_subshell_answer(jk_server *server, const jk_message *message, jk_buffer *content)
{
    if (!server->executor->subshell_open) {
        jk_error_content(content, "this kernel runs without subshells");
    } else if (strcmp(message->type, "create_subshell_request") == 0) {
        answer_create(server, content);
    } else if (strcmp(message->type, "delete_subshell_request") == 0) {
        answer_delete(server, message, content);
    } else {
        answer_list(server, content);
    }
}
