/* What the fuzz targets share. A target is one LLVMFuzzerTestOneInput() in fuzz_NAME.c; it is linked with
 * libFuzzer (./dev fuzz) or with replay.c, which runs the files of corpus/NAME through it under ctest. */
#ifndef DRUPE_FUZZ_H
#define DRUPE_FUZZ_H

#include "jkernel/wire/wire.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* End the process when something that always holds does not: a finding. */
#define FUZZ_CHECK(condition)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

#define FUZZ_CUT 0xff /* separates the pieces of an input; no byte of UTF-8 */

/* Cut `rest` at the first FUZZ_CUT: returns what is before it and leaves what is behind it. Both borrowed. */
jk_bytes fuzz_piece(jk_bytes *rest);

/* Append a frame with a copy of these bytes. */
void fuzz_frame_add(jk_frames *frames, jk_bytes bytes);

/* Two sockets, connected to each other within the process; always the same two. */
void fuzz_pair(void **in, void **out);

/* Check that `text` is what every message must be: one JSON object in valid UTF-8. */
void fuzz_check_object(jk_bytes text);

#endif
