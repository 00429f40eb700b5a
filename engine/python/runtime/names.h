/* The names that keywords and attributes have in Python: see runtime_room.h. */
#ifndef DRUPE_PYTHON_NAMES_H
#define DRUPE_PYTHON_NAMES_H

/* Keywords and attribute names, interned once so that a keyword is found by comparing pointers. */
#define DRUPE_PY_NAMES(X)                                                                                    \
    X(count)                                                                                                 \
    X(dEvents)                                                                                               \
    X(dest)                                                                                                  \
    X(gS)                                                                                                    \
    X(in_order)                                                                                              \
    X(lS)                                                                                                    \
    X(priority)                                                                                              \
    X(alignment)                                                                                             \
    X(_make_host)                                                                                            \
    X(args)                                                                                                  \
    X(axes)                                                                                                  \
    X(axis)                                                                                                  \
    X(base)                                                                                                  \
    X(cache)                                                                                                 \
    X(condition)                                                                                             \
    X(context)                                                                                               \
    X(copy)                                                                                                  \
    X(device)                                                                                                \
    X(dim0)                                                                                                  \
    X(dim1)                                                                                                  \
    X(dim2)                                                                                                  \
    X(devices)                                                                                               \
    X(dst)                                                                                                   \
    X(dtype)                                                                                                 \
    X(event)                                                                                                 \
    X(fill_value)                                                                                            \
    X(filter)                                                                                                \
    X(global_size)                                                                                           \
    X(keepdims)                                                                                              \
    X(kernel)                                                                                                \
    X(language)                                                                                              \
    X(local_size)                                                                                            \
    X(mem)                                                                                                   \
    X(nbytes)                                                                                                \
    X(nbytes_or_obj)                                                                                         \
    X(obj)                                                                                                   \
    X(options)                                                                                               \
    X(order)                                                                                                 \
    X(out)                                                                                                   \
    X(partition)                                                                                             \
    X(profiling)                                                                                             \
    X(property)                                                                                              \
    X(result)                                                                                                \
    X(queue)                                                                                                 \
    X(shape)                                                                                                 \
    X(source)                                                                                                \
    X(specializations)                                                                                       \
    X(src)                                                                                                   \
    X(start)                                                                                                 \
    X(step)                                                                                                  \
    X(stream)                                                                                                \
    X(sycl_queue)                                                                                            \
    X(timeout)                                                                                               \
    X(usm_type)                                                                                              \
    X(val)                                                                                                   \
    X(value)                                                                                                 \
    X(wait_for)                                                                                              \
    X(x)                                                                                                     \
    X(x1)                                                                                                    \
    X(x2)                                                                                                    \
    X(_dtype)                                                                                                \
    X(_launcher)                                                                                             \
    X(_nbytes)                                                                                               \
    X(__sycl_usm_array_interface__)                                                                          \
    X(_drupe)

#endif
