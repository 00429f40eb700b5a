/* Properties of devices as Python objects. */
#ifndef DRUPE_PYTHON_DEVICE_INFO_H
#define DRUPE_PYTHON_DEVICE_INFO_H

#include "state.h"

/* A property: str, int, bool, a tuple of ints, a member of an enumeration of drupe.enums or a tuple of them;
 * None where it means nothing on the device. */
PyObject *drupe_py_info_value(drupe_py_state *state, drupe_device *device, drupe_info key);
/* The member of that name of an enumeration of drupe.enums. */
PyObject *drupe_py_word(drupe_py_state *state, const char *enumeration, const char *word);
/* The members of the bits of a FLAGS property. */
PyObject *drupe_py_words(drupe_py_state *state, drupe_info key, uint64_t bits);

#endif
