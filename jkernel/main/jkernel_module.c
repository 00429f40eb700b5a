/* drupe._jkernel: ties the server's objects and the CPython executor into one extension module. */
#include "jkernel/pyexec/pyexec.h"

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, JK_SLOT(jk_state_exec)},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_jkernel",
    .m_doc = "The Jupyter kernel's C side: sockets, streams, signals and the link to the device engine.",
    .m_size = sizeof(jk_state),
    .m_slots = slots,
    .m_traverse = jk_state_traverse,
    .m_clear = jk_state_clear,
    .m_free = jk_state_free,
};

PyMODINIT_FUNC PyInit__jkernel(void);

PyMODINIT_FUNC PyInit__jkernel(void)
{
    return PyModuleDef_Init(&definition);
}
