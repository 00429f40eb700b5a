/* What the files about a configuration share: connection.c, registration.c, wire_file.c. Inside jkernel/wire.
 */
#ifndef JK_WIRE_CONFIG_H
#define JK_WIRE_CONFIG_H

#include "jkernel/wire/wire.h"

/* --- Private files (wire_file.c)
 * ----------------------------------------------------------------------------- */

/* Read a small regular file that only its owner may read or write; the environment variable
 * JUPYTER_ALLOW_INSECURE_WRITES=1 allows any mode. Returns 0 and the malloc'ed, NUL-ended text (*taken* by
 * the caller; secret: jk_file_forget()), or -1 by jk_fail(). */
int jk_file_load(const char *path, char **text, size_t *size);

/* Wipe and free a text. NULL-safe. */
void jk_file_forget(char *text, size_t size);

/* Put `text` into `path`: a new file of mode 0600 takes the place of the old one. Returns 0, or -1 with
 * errno.
 */
int jk_file_store(const char *path, const char *text, size_t size);

/* --- Fields of config->document (connection.c): 0, or -1 by jk_fail() -----------------------------------
 */

/* Copy a text field; `fallback` NULL makes it required. */
int jk_field_text(const jk_config *config, const char *name, const char *fallback, char *text, size_t size);
/* A port, as a number or as text. */
int jk_field_port(const jk_config *config, const char *name, int *port);
/* The address in field `name`, checked for config->transport; a path becomes absolute. */
int jk_field_address(const jk_config *config, const char *name, const char *fallback, char ip[JK_IP_SIZE]);

/* The names of the five port fields, by jk_channel. */
extern const char *const jk_port_fields[JK_CHANNELS];

/* --- Registration files (registration.c) -----------------------------------------------------------------
 */

/* Whether config->document is one: it names a registration port, but no port to bind. */
bool jk_registration_found(const jk_config *config);
/* Fill what only a registration file has, and `ip`. */
int jk_registration_fill(jk_config *config);
/* Make `config` stand for a connection file of our own, in Jupyter's runtime folder. Returns 0, or -1 with
 * errno. */
int jk_registration_move(jk_config *config);

#endif
