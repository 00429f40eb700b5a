/* Fused kernels on OpenCL devices: their recipes, their texts, and when they are built.
 *
 * Reading order: fused_recipe.c, fused_print.c, fused_build.c, fused_launch.c. Statuses as in drupe/status.h;
 * all functions may be called from any thread. */
#ifndef DRUPE_FUSED_ROOM_H
#define DRUPE_FUSED_ROOM_H

#include "array/array_room.h"
#include "generated/drupe_fused.h"

/* --- fused_recipe.c -------------------------------------------------------------------------------------
 */

enum { FUSED_BROADCAST, FUSED_NEIGHBOURS, FUSED_STRIDED }; /* along the last axis */

/* What a text depends on beside steps and types: how it goes through the operands. */
typedef struct fused_form {
    bool wide;     /* numbers of elements do not fit int */
    uint8_t width; /* elements that are loaded at a time: 1, or a power of two with aligned loads */
    uint8_t lanes; /* elements that a work-item has in hand: `width`, or where that is 1 single ones apart */
    uint8_t along[DRUPE_FUSED_OPERANDS]; /* of the enum above */
} fused_form;
void drupe_fused_form(const drupe_target *target, const drupe_fused *f, fused_form *form);

/* The bytes in which kernels of one text are equal, and no others. Their first is SHAPE_FUSED, so that they
 * differ from all of a kernel_recipe. */
#define FUSED_RECIPE_MOST (8 + 2 * DRUPE_FUSED_OPERANDS + DRUPE_FUSED_CONSTANTS + 10 * DRUPE_FUSED_STEPS)
typedef struct fused_recipe {
    size_t size;
    uint8_t bytes[FUSED_RECIPE_MOST];
} fused_recipe;
void drupe_fused_recipe(const drupe_fused *f, const fused_form *form, fused_recipe *recipe);
/* "fused_" and a hash of the recipe: the kernel's name. */
#define FUSED_NAME_SIZE 24
void drupe_fused_name(const fused_recipe *recipe, char name[FUSED_NAME_SIZE]);

/* --- render.c: what fused_print.c shares with it -------------------------------------------------------- */

/* Define the macro `name`, which converts a value of one type, as a register has it, to another. */
void drupe_render_cast(drupe_text *text, const char *name, const dtype_row *from, const dtype_row *to);
/* What an element of a type is in a register. */
const char *drupe_render_value(const dtype_row *row);
/* The type of an operation's result before it is stored. */
const dtype_row *drupe_render_result(const op_row *row, const dtype_row *compute);
/* Lines of generated/sources.inc. */
enum { TEXT_DIALECT, TEXT_FUSED, TEXT_NUMERIC, TEXT_HALF, TEXT_COMPLEX };
void drupe_render_lines(drupe_text *text, int which);

/* --- fused_print.c -------------------------------------------------------------------------------------- */

/* The text of the program whose one kernel, called drupe_fused_name(), is `f`. Its arguments are the
 * operands' pointers, in their order, and a struct that drupe_fused_fill() fills. */
drupe_status drupe_fused_print(const drupe_target *target, const drupe_fused *f, drupe_text *text);

/* --- fused_build.c --------------------------------------------------------------------------------------
 */

/* Count a use of `f`, and find its kernel: retained, or NULL where the steps are to run one by one. What was
 * used three times is built in the background, and what the disk cache has is loaded there at once;
 * DRUPE_FUSE_BUILD=always builds within the first call. A text that does not build is no error: its steps run
 * one by one ever after. Not for precompiled kernels, nor for checked mode: no kernel there. */
void drupe_fused_ready(drupe_target *target, const drupe_fused *f, drupe_kernel **kernel);
/* Wait until nothing is built or is to be built. DRUPE_E_TIMEOUT. */
drupe_status drupe_fused_settle(uint64_t timeout_ns);
/* Give up what is to be built for any target, and wait for no build. Before targets are closed. */
void drupe_fused_stop(void);

/* --- fused_launch.c -------------------------------------------------------------------------------------
 */

#define FUSED_PARAMS_MOST                                                                                    \
    (3 + 2 * DRUPE_FUSED_CONSTANTS + DRUPE_KERNEL_DIMS * (1 + DRUPE_FUSED_OPERANDS)) /* words of 8 bytes */
/* The bytes of the struct that tells a kernel the rest: so many. `each`: rows of a work-item. */
size_t drupe_fused_fill(const drupe_fused *f, const fused_form *form, size_t each,
                        uint64_t params[FUSED_PARAMS_MOST]);

/* Launch the kernel of `f`, where it is ready; else *launched is false, and nothing has happened. `s` has
 * queue, label, effects (operand k in bit k) and so on, and no memories: those are `memories`, one for each
 * operand. */
drupe_status drupe_fused_launch(drupe_target *target, const drupe_fused *f, const drupe_submission *s,
                                struct drupe_memory *const *memories, bool *launched);

#endif
