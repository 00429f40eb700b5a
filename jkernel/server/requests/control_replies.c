/* What the executor replies to control requests leaves through the control thread. */
#include "jkernel/server/requests/requests_room.h"

#include <sys/eventfd.h>
#include <unistd.h>

int jk_replies_open(jk_replies *replies)
{
    replies->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    jk_mutex_open(&replies->lock);
    return replies->wake < 0 ? -1 : 0;
}

static jk_entry *replies_take(jk_replies *replies)
{
    pthread_mutex_lock(&replies->lock);
    jk_entry *entry = replies->head;
    replies->head = replies->tail = NULL;
    pthread_mutex_unlock(&replies->lock);
    return entry;
}

void jk_replies_clear(jk_replies *replies)
{
    jk_entry *entry = replies_take(replies);
    while (entry) {
        jk_entry *next = entry->next;
        jk_entry_release(entry);
        entry = next;
    }
    if (replies->wake >= 0) close(replies->wake);
    replies->wake = -1;
}

void jk_replies_push(jk_server *server, jk_entry *entry)
{
    jk_replies *replies = &server->requests->replies;
    pthread_mutex_lock(&replies->lock);
    if (replies->tail) {
        replies->tail->next = entry;
    } else {
        replies->head = entry;
    }
    replies->tail = entry;
    pthread_mutex_unlock(&replies->lock);
    jk_event_raise(replies->wake);
}

void jk_replies_send(jk_server *server)
{
    jk_entry *entry = replies_take(&server->requests->replies);
    while (entry) {
        jk_entry *next = entry->next;
        jk_reply_send(server, JK_CONTROL, entry);
        jk_entry_release(entry);
        entry = next;
    }
}

void jk_replies_wake(jk_server *server)
{
    jk_event_raise(server->requests->replies.wake);
}
