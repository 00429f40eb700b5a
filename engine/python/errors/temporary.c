/* Operands that nobody else has: in `2*x + 1` the product is dropped as soon as the sum is made.
 *
 * NumPy computes such a sum in the product's memory, which takes half of the cache and of the bandwidth. A
 * reference count of 1 does not tell a temporary value: a C extension may hold its only reference in a
 * variable or an array of objects, and use it again. So the running instruction has to be a binary operation
 * whose two operands are these: they lie at the place of the frame's stack that belongs to the instruction.
 * Then the one reference is the stack's, and the interpreter drops it. Where that cannot be found out nothing
 * is taken for temporary. */
#include "engine/python/errors/errors_room.h"

/* From 3.14 on the stack holds borrowed references to variables too. */
#if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
#define Py_BUILD_CORE 1
#include "internal/pycore_frame.h"
#undef Py_BUILD_CORE
#include <opcode.h>

/* --- The depth of the stack at an instruction ---------------------------------------------------------- */

typedef struct instruction {
    int opcode, argument;
    int next; /* index of the code unit behind it and its inline caches */
} instruction;

/* How far a jump forward goes, or 0: it is none. */
static int jump_of(const instruction *one)
{
    switch (one->opcode) {
    case FOR_ITER:
    case SEND:
    case JUMP_FORWARD:
#if PY_VERSION_HEX < 0x030C0000
    case JUMP_IF_FALSE_OR_POP:
    case JUMP_IF_TRUE_OR_POP:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
#else
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_TRUE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
#endif
        return one->argument;
    default: return 0;
    }
}

static bool goes_on(int opcode)
{
    switch (opcode) {
    case RETURN_VALUE:
#ifdef RETURN_CONST
    case RETURN_CONST:
#endif
    case RAISE_VARARGS:
    case RERAISE:
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT: return false;
    default: return true;
    }
}

static instruction read_at(const unsigned char *units, int count, int at)
{
    instruction one = {units[2 * at], units[2 * at + 1], at + 1};
    while (one.opcode == EXTENDED_ARG && one.next < count) {
        one.opcode = units[2 * one.next];
        one.argument = one.argument << 8 | units[2 * one.next + 1];
        one.next++;
    }
    while (one.next < count && units[2 * one.next] == CACHE) one.next++;
    return one;
}

static void reach(int *depths, int count, int at, int depth, const instruction *one, int jump)
{
    const int effect = PyCompile_OpcodeStackEffectWithJump(one->opcode, one->argument, jump);
    if (at < count && effect != PY_INVALID_STACK_EFFECT) depths[at] = depth + effect;
}

/* The values on the stack when the code unit `wanted` begins, from one walk over the code in front of it; -1:
 * only an exception or a jump backward leads there. `depths` has an element for each unit. */
static int walk_to(const unsigned char *units, int count, int wanted, int first, int *depths)
{
    for (int i = 0; i < count; i++) depths[i] = -1;
    depths[0] = first;
    for (int at = 0; at < wanted;) {
        const instruction one = read_at(units, count, at);
        const int depth = depths[at], jump = jump_of(&one);
        at = one.next;
        if (depth < 0) continue;
        if (jump > 0) reach(depths, count, at + jump, depth, &one, 1);
        if (goes_on(one.opcode)) reach(depths, count, at, depth, &one, 0);
    }
    return depths[wanted];
}

int drupe_py_stack_depth(PyCodeObject *code, int offset)
{
    const int generator = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    PyObject *bytes = PyCode_GetCode(code);
    int depth = -1, count = !bytes ? 0 : (int)(PyBytes_GET_SIZE(bytes) / 2);
    int *depths = count > 0 ? PyMem_Malloc((size_t)count * sizeof *depths) : NULL;
    /* Before 3.13 the effect of making a generator leaves out what is sent to it. */
    const int first = PY_VERSION_HEX < 0x030D0000 && code->co_flags & generator ? 1 : 0;
    if (depths && offset / 2 < count) {
        const unsigned char *units = (const unsigned char *)PyBytes_AS_STRING(bytes);
        if (units[offset / 2 * 2] == BINARY_OP) depth = walk_to(units, count, offset / 2, first, depths);
    }
    PyMem_Free(depths);
    Py_XDECREF(bytes);
    PyErr_Clear();
    return depth >= 2 && depth <= code->co_stacksize ? depth : -1;
}

/* --- The operands ------------------------------------------------------------------------------------- */

static const PyObject *code_of(const struct _PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return frame->f_executable;
#else
    return (const PyObject *)frame->f_code;
#endif
}

static bool are_operands(const PyObject *a, const PyObject *b)
{
    const struct _PyInterpreterFrame *frame = drupe_py_frame();
    const PyObject *code = !frame ? NULL : code_of(frame);
    if (!code || !PyCode_Check(code)) return false;
    const int depth = drupe_py_site_depth();
    if (depth < 0) return false;
    PyObject *const *top = frame->localsplus + ((const PyCodeObject *)code)->co_nlocalsplus + depth;
    return top[-2] == a && top[-1] == b;
}
#else
int drupe_py_stack_depth(PyCodeObject *code, int offset)
{
    (void)code, (void)offset;
    return -1;
}

static bool are_operands(const PyObject *a, const PyObject *b)
{
    (void)a, (void)b;
    return false;
}
#endif

size_t drupe_py_temporary(PyObject *a, PyObject *b, const drupe_operand operands[2])
{
    PyObject *const objects[] = {a, b};
    for (size_t i = 0; i < 2; i++)
        if (operands[i].array && Py_REFCNT(objects[i]) == 1 && are_operands(a, b)) return i;
    return 2;
}
