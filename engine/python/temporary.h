/* Operands that end with the operation they are given to. */
#ifndef DRUPE_PYTHON_TEMPORARY_H
#define DRUPE_PYTHON_TEMPORARY_H

#include "objects.h"

/* For the number slots of Array. Which of the two, 0 or 1, the interpreter drops when the operator returns,
 * so that nobody can see what becomes of its memory; 2: neither, or it is not known. Needs the GIL. */
size_t drupe_py_temporary(PyObject *a, PyObject *b, const drupe_operand operands[2]);
/* How many values lie on a frame's stack when the binary operation at this offset of its code begins; -1: it
 * is another instruction, or it is not known. Needs the GIL. */
int drupe_py_stack_depth(PyCodeObject *code, int offset);

#endif
