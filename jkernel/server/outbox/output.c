/* The room of the outbox is opened and cleared. */
#include "jkernel/server/outbox/outbox_room.h"

int jk_output_open(jk_server *server)
{
    jk_output *output = server->output;
    int result = jk_outbox_open(&output->outbox);
    jk_work_open(&output->cells.work);
    jk_stdio_open(&output->stdio);
    jk_lock_register(server, &output->outbox.lock);
    jk_lock_register(server, &output->stdio.lock);
    return result;
}

void jk_output_clear(jk_server *server)
{
    jk_output *output = server->output;
    pthread_mutex_lock(&output->outbox.lock); /* against late callers */
    jk_outbox_clear_locked(&output->outbox);
    jk_cells_clear_locked(&output->cells);
    pthread_mutex_unlock(&output->outbox.lock);
    jk_stdio_clear(&output->stdio);
}
