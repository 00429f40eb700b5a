/* The names of cells, by which debuggers and libraries know them. */
#include "jkernel/server/answers/answers_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MurmurHash2 of 32 bits: front-ends compute the same from the text of a cell. */
uint32_t jk_cell_hash(const void *data, size_t size)
{
    const uint32_t factor = 0x5bd1e995u;
    const unsigned char *at = data;
    uint32_t hash = JK_CELL_SEED ^ (uint32_t)size;
    for (; size >= 4; at += 4, size -= 4) {
        uint32_t word =
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        word *= factor;
        word ^= word >> 24;
        hash = (hash * factor) ^ (word * factor);
    }
    if (size > 2) hash ^= (uint32_t)at[2] << 16;
    if (size > 1) hash ^= (uint32_t)at[1] << 8;
    if (size > 0) hash = (hash ^ at[0]) * factor;
    hash ^= hash >> 13;
    hash *= factor;
    return hash ^ hash >> 15;
}

/* Libraries that cache compiled functions (numba, joblib) know a cell by a folder that begins with
 * "ipykernel_". The rest of the name is random: nobody can have made the folder before us. */
void jk_cell_names_open(jk_server *server)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || folder[0] != '/' || strlen(folder) > sizeof server->answers->cell_prefix - 64 ||
        access(folder, W_OK | X_OK) != 0) {
        folder = "/tmp";
    }
    snprintf(server->answers->cell_prefix, sizeof server->answers->cell_prefix, "%s/ipykernel_%.16s/", folder,
             server->session->id);
}

void jk_server_cell_name(const jk_server *server, jk_bytes code, char name[JK_CELL_NAME_SIZE])
{
    snprintf(name, JK_CELL_NAME_SIZE, "%s%lu%s", server->answers->cell_prefix,
             (unsigned long)jk_cell_hash(code.data, code.size), JK_CELL_SUFFIX);
}
