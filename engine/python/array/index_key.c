/* Indexing by arrays and masks, alone or beside integers and slices, by NumPy's rules.
 *
 * A key is read twice: first its items become parts, where lists and arrays of NumPy are copied to the device
 * and bools lose their numbers; then the parts are laid along the axes. What integers, slices, ... and None
 * say gives a view, of which arrays pick along axes of their own. Arrays that stand side by side in a key,
 * integers counted among them, leave their axes where they stand; else these come first. */
#include "engine/python/array/key_room.h"
#include "engine/python/errors/errors_room.h"
#include "engine/python/waits/waits_room.h"
#include <stddef.h>

typedef enum part_kind {
    PART_INTEGER,
    PART_SLICE,
    PART_NEW,
    PART_ELLIPSIS,
    PART_INDEX,
    PART_MASK,
    PART_TRUTH
} part_kind;

typedef struct key_part {
    part_kind kind;
    PyObject *object; /* owned: the item, or the Array that it became */
    bool truth;       /* PART_TRUTH */
} key_part;

/* An array that picks along an axis of the view. */
typedef struct key_pick {
    drupe_array array; /* owned */
    int axis, named;
} key_pick;

typedef struct array_key {
    drupe_py_state *state;
    const drupe_array *x; /* borrowed */
    int nparts, npicks;
    int run; /* of side by side arrays and integers: 0 before, 1 in it, 2 behind it, 3 there are two */
    int place;
    drupe_array view; /* owned */
    index_plan plan;
    key_part parts[KEY_PARTS_MAX];
    key_pick picks[DRUPE_MAX_DIMS];
} array_key;

/* Parts and picks are many bytes, most of which nobody needs. */
static void key_open(array_key *key)
{
    memset(key, 0, offsetof(array_key, parts));
}

static void key_clear(array_key *key)
{
    for (int i = 0; i < key->npicks; i++) drupe_array_clear(&key->picks[i].array);
    drupe_array_clear(&key->view);
    for (int i = 0; i < key->nparts; i++) Py_CLEAR(key->parts[i].object);
}

static bool is_integer(drupe_dtype dtype)
{
    return drupe_dtype_kind(dtype) == 'i' || drupe_dtype_kind(dtype) == 'u';
}

/* --- Items ---------------------------------------------------------------------------------------------- */

/* Whether an item names no elements one by one. */
static bool item_basic(drupe_py_state *state, PyObject *item)
{
    if (PyLong_CheckExact(item) || PySlice_Check(item) || item == Py_None || item == Py_Ellipsis) return true;
    if (PyBool_Check(item) || PyList_Check(item) || PyTuple_Check(item)) return false;
    if (drupe_py_is(state, item, DRUPE_PY_TYPE_Array)) return false;
    if (PyUnicode_Check(item) || PyFloat_Check(item) || PyLong_Check(item)) return true;
    drupe_scalar scalar;
    int found = drupe_py_scalar_arg(state, item, &scalar);
    if (found < 0) PyErr_Clear();
    if (found != 0) return found < 0 || scalar.kind != DRUPE_SCALAR_KIND_BOOL;
    return !PyObject_CheckBuffer(item) && !PySequence_Check(item) &&
           !PyObject_HasAttrString((PyObject *)Py_TYPE(item), "__array__");
}

bool drupe_py_key_advanced(drupe_py_state *state, PyObject *key)
{
    if (!PyTuple_Check(key)) return !item_basic(state, key);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
        if (!item_basic(state, PyTuple_GET_ITEM(key, i))) return true;
    return false;
}

/* An array of a list or of another library, on the queue of x. */
static PyObject *item_array(array_key *key, PyObject *item)
{
    PyObject *array =
        drupe_py_array_from(key->state, item, key->x->queue, DRUPE_MEM_DEVICE, DRUPE_DTYPE_NONE);
    const bool untyped = PyList_Check(item) || PyTuple_Check(item);
    if (!array || !untyped || drupe_py_array_of(array)->size) return array;
    /* A list without elements says nothing of their type. */
    PyObject *integers = drupe_py_array_cast(key->state, drupe_py_array_of(array), DRUPE_INT64);
    Py_DECREF(array);
    return integers;
}

/* A part of an Array, whose reference is taken. */
static bool part_of_array(array_key *key, PyObject *object, key_part *part)
{
    const drupe_array *array = drupe_py_array_of(object);
    part->object = object;
    part->kind = PART_INDEX;
    if (!drupe_py_settle(key->state, array)) return false;
    if (is_integer(array->dtype)) return true;
    if (array->dtype != DRUPE_BOOL) {
        PyErr_Format(PyExc_IndexError,
                     "arrays that index are of integers or bools, and this one is of %s: convert it with "
                     "astype(\"int64\")",
                     drupe_dtype_name(array->dtype));
        return false;
    }
    part->kind = PART_MASK;
    if (array->ndim > 0) return true;
    PyObject *item = drupe_py_array_item(key->state, array);
    if (!item) return false;
    part->kind = PART_TRUTH;
    part->truth = item == Py_True;
    Py_DECREF(item);
    return true;
}

static bool part_make(array_key *key, PyObject *item, key_part *part)
{
    drupe_scalar scalar;
    part->object = Py_NewRef(item);
    if (item_basic(key->state, item)) {
        part->kind = item == Py_None       ? PART_NEW
                     : item == Py_Ellipsis ? PART_ELLIPSIS
                     : PySlice_Check(item) ? PART_SLICE
                                           : PART_INTEGER;
        return part->kind != PART_INTEGER || PyIndex_Check(item) || drupe_py_key_refuse(item);
    }
    if (drupe_py_is(key->state, item, DRUPE_PY_TYPE_Array)) return part_of_array(key, part->object, part);
    if (!PyList_Check(item) && !PyTuple_Check(item)) {
        int found = drupe_py_scalar_arg(key->state, item, &scalar);
        if (found < 0) return false;
        if (found > 0) { /* a bool: what else is a number is basic */
            part->kind = PART_TRUTH;
            part->truth = scalar.i != 0;
            return true;
        }
    }
    Py_CLEAR(part->object);
    PyObject *array = item_array(key, item);
    return array != NULL && part_of_array(key, array, part);
}

static bool key_read(array_key *key, PyObject *object)
{
    const bool tuple = PyTuple_Check(object);
    const Py_ssize_t count = tuple ? PyTuple_GET_SIZE(object) : 1;
    if (count > KEY_PARTS_MAX) {
        PyErr_Format(PyExc_IndexError, "too many indices: a key has at most %d items, and this one has %zd",
                     KEY_PARTS_MAX, count);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = tuple ? PyTuple_GET_ITEM(object, i) : object;
        key->nparts++;
        if (!part_make(key, item, &key->parts[i])) return false;
    }
    return true;
}

/* --- Axes ----------------------------------------------------------------------------------------------- */

/* `array` (borrowed) picks along the next axis of the view, which has to be planned next. */
static bool pick_add(array_key *key, const drupe_array *array)
{
    if (key->npicks == DRUPE_MAX_DIMS) return drupe_py_key_too_many(key->x, key->npicks + 1);
    key_pick *pick = &key->picks[key->npicks++];
    drupe_array_view(array, &pick->array);
    pick->axis = key->plan.out_axis;
    pick->named = key->plan.axis;
    return true;
}

/* An axis of the mask may be empty, too, as the array API has it: it picks nothing. */
static bool mask_fits(const array_key *key, const drupe_array *mask)
{
    for (int d = 0; d < mask->ndim; d++) {
        const size_t own = key->x->shape[key->plan.axis + d];
        if (mask->shape[d] == own || mask->shape[d] == 0) continue;
        PyErr_Format(PyExc_IndexError,
                     "a mask has the lengths of the axes that it indexes: axis %d has %zu elements, and the "
                     "mask has %zu there",
                     key->plan.axis + d, own, mask->shape[d]);
        return false;
    }
    return true;
}

/* A mask is the coordinates of its true elements; or, if `whole`, a pick that stands for all of its axes. */
static bool place_mask(array_key *key, const drupe_array *mask, bool whole)
{
    if (!mask_fits(key, mask)) return false;
    if (whole) {
        bool added = pick_add(key, mask);
        drupe_py_plan_rest(&key->plan, key->x, mask->ndim);
        return added;
    }
    drupe_array all;
    if (!drupe_py_positions(key->state, mask, &all)) return false;
    bool good = true;
    for (int d = 0; good && d < mask->ndim; d++) {
        drupe_array row;
        const drupe_slice slices[] = {{d, 1, 1, true}, {0, 1, all.shape[1], false}};
        drupe_array_view(&all, &row);
        good = drupe_array_slice(&row, slices) == DRUPE_OK && pick_add(key, &row);
        drupe_array_clear(&row);
        drupe_py_plan_rest(&key->plan, key->x, 1);
    }
    drupe_array_clear(&all);
    return good;
}

/* A bool is an axis of length 1, of which it picks all or nothing. */
static bool place_truth(array_key *key, bool truth)
{
    drupe_array index = {0};
    const size_t length = truth ? 1 : 0;
    drupe_status status =
        drupe_array_result(key->x->queue, DRUPE_MEM_DEVICE, DRUPE_INT64, 1, &length, &index);
    if (status == DRUPE_OK && truth)
        status = drupe_array_assign(&index, &(drupe_operand){.scalar = {.kind = DRUPE_SCALAR_KIND_INT}});
    bool good = status == DRUPE_OK && pick_add(key, &index) && drupe_py_plan_new(&key->plan);
    if (status != DRUPE_OK) drupe_py_raise_on(key->state, key->x->queue);
    drupe_array_clear(&index);
    return good;
}

/* Where the axes of index arrays come in: with the first part of a run of them. */
static void run_look(array_key *key, part_kind kind)
{
    const bool picks = kind == PART_INTEGER || kind >= PART_INDEX;
    if (!picks) {
        if (key->run == 1) key->run = 2;
        return;
    }
    if (key->run == 0) key->place = key->plan.out_axis;
    key->run = key->run == 0 ? 1 : key->run == 2 ? 3 : key->run;
}

static bool place_part(array_key *key, const key_part *part, int fill, bool whole)
{
    index_plan *plan = &key->plan;
    run_look(key, part->kind);
    switch (part->kind) {
    case PART_INTEGER: return drupe_py_plan_integer(plan, key->x, part->object);
    case PART_SLICE: return drupe_py_plan_slice(plan, key->x, part->object);
    case PART_NEW: return drupe_py_plan_new(plan);
    case PART_ELLIPSIS: drupe_py_plan_rest(plan, key->x, fill); return true;
    case PART_MASK: return place_mask(key, drupe_py_array_of(part->object), whole);
    case PART_TRUTH: return place_truth(key, part->truth);
    default: break;
    }
    bool added = pick_add(key, drupe_py_array_of(part->object));
    drupe_py_plan_rest(plan, key->x, 1);
    return added;
}

/* Whether a mask has the lengths of the array's first axes. */
static bool mask_covers(const array_key *key, const drupe_array *mask)
{
    for (int d = 0; d < mask->ndim && d < key->x->ndim; d++)
        if (mask->shape[d] != key->x->shape[d]) return false;
    return true;
}

/* How many axes the parts name; -1 with an exception. `lone_mask`: a mask is the only array among them, and
 * covers the first axes of the view. */
static int key_count(const array_key *key, bool *lone_mask)
{
    int named = 0, ellipses = 0, arrays = 0, masks = 0;
    bool first = true;
    *lone_mask = true;
    for (int i = 0; i < key->nparts; i++) {
        const key_part *part = &key->parts[i];
        if (part->kind == PART_MASK) {
            named += drupe_py_array_of(part->object)->ndim;
            masks++;
            *lone_mask = *lone_mask && first && mask_covers(key, drupe_py_array_of(part->object));
        } else if (part->kind == PART_ELLIPSIS) {
            ellipses++;
        } else if (part->kind != PART_NEW && part->kind != PART_TRUTH) {
            named++;
        }
        arrays += part->kind == PART_INDEX || part->kind == PART_TRUTH;
        first = false;
    }
    *lone_mask = *lone_mask && masks == 1 && arrays == 0;
    if (ellipses > 1) {
        PyErr_SetString(PyExc_IndexError, "an index can hold one ellipsis (...) only");
        return -1;
    }
    return named <= key->x->ndim || drupe_py_key_too_many(key->x, named) ? named : -1;
}

static bool key_place(array_key *key, bool *lone_mask)
{
    int named = key_count(key, lone_mask);
    if (named < 0) return false;
    for (int i = 0; i < key->nparts; i++)
        if (!place_part(key, &key->parts[i], key->x->ndim - named, *lone_mask)) return false;
    drupe_py_plan_rest(&key->plan, key->x, key->x->ndim - key->plan.axis);
    if (key->run == 3) key->place = 0;
    return drupe_py_plan_view(key->state, key->x, &key->plan, &key->view);
}

static bool key_make(array_key *key, PyObject *self, PyObject *object, bool *lone_mask)
{
    key->state = drupe_py_state_of(self);
    key->x = drupe_py_array_of(self);
    return drupe_py_enter(key->state) && drupe_py_settle(key->state, key->x) && key_read(key, object) &&
           key_place(key, lone_mask);
}

static drupe_selection key_selection(const array_key *key, drupe_index indices[DRUPE_MAX_DIMS])
{
    for (int i = 0; i < key->npicks; i++)
        indices[i] = (drupe_index){&key->picks[i].array, key->picks[i].axis, key->picks[i].named};
    return (drupe_selection){indices, (size_t)key->npicks, key->place, DRUPE_INDEX_RAISE};
}

/* --- Reading and writing -------------------------------------------------------------------------------- */

static PyObject *key_get(array_key *key, bool lone_mask)
{
    if (lone_mask) return drupe_py_mask_pick(key->state, &key->view, &key->picks[0].array);
    drupe_index indices[DRUPE_MAX_DIMS];
    const drupe_selection selection = key_selection(key, indices);
    drupe_array out = {0};
    PyThreadState *thread = drupe_py_index_begin(key->state, &key->view, &key->picks[0].array);
    drupe_status status = drupe_array_gather(&key->view, &selection, &out);
    return drupe_py_array_made(key->state, thread, status, key->x->queue, &out);
}

static bool key_set(array_key *key, bool lone_mask, const drupe_operand *value)
{
    drupe_index indices[DRUPE_MAX_DIMS];
    const drupe_array *pick = &key->picks[0].array;
    PyThreadState *thread = drupe_py_index_begin(key->state, &key->view, value->array ? value->array : pick);
    drupe_status status;
    if (lone_mask) {
        status = drupe_array_mask_assign(&key->view, pick, value);
    } else {
        const drupe_selection selection = key_selection(key, indices);
        status = drupe_array_scatter(&key->view, &selection, value);
    }
    drupe_py_index_end(thread);
    if (status != DRUPE_OK) drupe_py_raise_on(key->state, key->x->queue);
    return status == DRUPE_OK;
}

PyObject *drupe_py_index_get(PyObject *self, PyObject *object)
{
    array_key key;
    bool lone_mask;
    key_open(&key);
    PyObject *result = key_make(&key, self, object, &lone_mask) ? key_get(&key, lone_mask) : NULL;
    key_clear(&key);
    return result;
}

bool drupe_py_index_set(PyObject *self, PyObject *object, PyObject *value)
{
    array_key key;
    bool lone_mask;
    key_open(&key);
    bool good = key_make(&key, self, object, &lone_mask);
    drupe_operand operand;
    PyObject *source = NULL;
    if (good) {
        int found = drupe_py_operand_arg(key.state, value, &operand);
        good = found >= 0 && (found == 0 || !operand.array || drupe_py_settle(key.state, operand.array));
        if (found == 0) {
            source = drupe_py_array_from(key.state, value, key.x->queue, DRUPE_MEM_DEVICE, DRUPE_DTYPE_NONE);
            good = source != NULL;
            if (good) operand = (drupe_operand){.array = drupe_py_array_of(source)};
        }
    }
    good = good && key_set(&key, lone_mask, &operand);
    Py_XDECREF(source);
    key_clear(&key);
    return good;
}
