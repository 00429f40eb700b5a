/* What the tests of the disk cache share; see cache_fixture.c. */
#ifndef CACHE_FIXTURE_H
#define CACHE_FIXTURE_H

#include "base/base.h"
#include "drupe/cache.h"
#include "drupe/program.h"
#include "test_compiler.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

#define OK(expression) check_ok((expression), #expression, __LINE__)
void check_ok(drupe_status status, const char *what, int line);

/* DRUPE_CACHE_DIR, made anew for the program, and the folder of entries in it. */
extern char cache_root[];
extern char cache_folder[128];

drupe_status build(const drupe_source *source, char **log, drupe_program **program);
drupe_source text_source(const char *text);
/* Build and wait until it is stored. True when it came from the cache. */
bool built_from_cache(const drupe_source *source);
bool cached(const char *text);
/* Whether the folder has it, without a build. */
bool in_folder(const char *text, drupe_language language);
drupe_cache_info info(void);
/* As another process would begin. */
void start_again(void);
/* The path of the only entry. */
void entry_path(char *path, size_t size);
void write_file(const char *path, const char *bytes, size_t size);
/* A whole entry in the folder, made of these parts; its path. */
void write_entry(char path[256], const char *name, const char *where, const char *key, const char *body);

/* Run it in a forked child, which has the library open if this process has, or as if it began; it must
 * return. */
void in_fork(void (*run)(void));
void in_child(void (*run)(void));

/* A case with an empty cache of its own. */
int cache_setup(void **state);
int cache_teardown(void **state);
#define CASE(name) cmocka_unit_test_setup_teardown(name, cache_setup, cache_teardown)
/* Make the folder, or remove it with everything in it. */
bool cache_make(void);
bool cache_remove(void);

#endif
