/* What the shim's files share; see shim.c. */
#ifndef OPENCL_SHIM_H
#define OPENCL_SHIM_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdbool.h>
#include <stdint.h>

/* The real library's function of that name. */
#define SHIM_REAL(name) ((__typeof__(name) *)(uintptr_t)shim_real(#name))

bool shim_word(const char *word); /* whether OPENCL_SHIM_WORDS has it */
void *shim_real(const char *name);
void shim_newer(void); /* ends the process for a device that is too old for the caller */
/* The answer of a graphics card, or of a device with NUMA nodes: false when it has none of its own
 * (shim_card.c). */
bool shim_card_info(cl_device_info key, size_t size, void *value, size_t *needed, cl_int *code);
/* The shim's version of an Intel USM function, or NULL. */
void *shim_usm_function(const char *name);

/* shim_far.c: the far address of a driver's allocation; the driver's address of a pointer, which may also be
 * plain host memory; the driver's address of an allocation whose far one is given back. */
void *shim_far_alloc(void *near, size_t size);
void *shim_far_near(const void *pointer);
void *shim_far_free(void *far);

#endif
