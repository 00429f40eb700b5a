/* Moves elements between strided operands and buffers; host_block.h includes this.
 *
 * A cursor is a place in an operand, seen as a sequence of elements in C order of its shape. */

typedef struct cursor {
    i64 index[DRUPE_KERNEL_DIMS];
    i64 offset; /* elements */
} cursor;

static void cursor_seek(cursor *c, const operand *o, i64 at)
{
    c->offset = 0;
    for (int d = o->ndim - 1; d >= 0; d--) {
        const i64 rest = at / o->shape[d];
        c->index[d] = at - rest * o->shape[d];
        c->offset += c->index[d] * o->strides[d];
        at = rest;
    }
}

/* Forward by n elements that do not cross the end of the row. */
static void cursor_advance(cursor *c, const operand *o, i64 n)
{
    int d = o->ndim - 1;
    c->index[d] += n;
    c->offset += n * o->strides[d];
    while (d > 0 && c->index[d] == o->shape[d]) {
        c->offset -= o->shape[d] * o->strides[d];
        c->index[d] = 0;
        d--;
        c->index[d]++;
        c->offset += o->strides[d];
    }
}

/* Rows as short as this are moved column by column: a call for each would take longer than their elements. */
#define SHORT_ROW 6

#define ROWS_MOVE(name, type)                                                                                \
    static void name(void *operand_, void *buffer_, i64 rows, i64 n, i64 down, i64 right, int to_operand)    \
    {                                                                                                        \
        for (i64 i = 0; i < n; i++) {                                                                        \
            type *element = (type *)operand_ + i * right, *buffer = (type *)buffer_ + i;                     \
            if (to_operand)                                                                                  \
                for (i64 r = 0; r < rows; r++) element[r * down] = buffer[r * n];                            \
            else                                                                                             \
                for (i64 r = 0; r < rows; r++) buffer[r * n] = element[r * down];                            \
        }                                                                                                    \
    }
ROWS_MOVE(rows_move_1, uint8_t)
ROWS_MOVE(rows_move_2, uint16_t)
ROWS_MOVE(rows_move_4, uint32_t)
ROWS_MOVE(rows_move_8, uint64_t)
ROWS_MOVE(rows_move_16, pair)

/* A row that is broadcast, again and again. */
static void row_repeat(const operand *o, const char *element, i64 rows, i64 n, i64 right, char *buffer)
{
    const i64 all = rows * n * o->size;
    strided_copy(buffer, 1, element, right, n, o->size);
    for (i64 done = n * o->size; done < all; done *= 2)
        memcpy(buffer + done, buffer, (size_t)min(done, all - done));
}

/* As many whole rows as there are at once, up to n elements, where they are short or all the same; how many
 * elements that were, 0 where they are neither. Moves the cursor. */
static i64 operand_rows(const operand *o, cursor *c, i64 n, char *buffer, int to_operand)
{
    const int last = o->ndim - 1;
    const i64 length = o->shape[last];
    if (DRUPE_CHECKED || last < 1 || c->index[last] || n < 2 * length) return 0;
    const i64 rows = min(n / length, o->shape[last - 1] - c->index[last - 1]);
    const i64 down = o->strides[last - 1], right = o->strides[last];
    const int same = !to_operand && down == 0;
    if (rows < 2 || (!same && length > SHORT_ROW)) return 0;
    char *element = o->base + c->offset * o->size;
    if (same)
        row_repeat(o, element, rows, length, right, buffer);
    else if (o->size == 1)
        rows_move_1(element, buffer, rows, length, down, right, to_operand);
    else if (o->size == 2)
        rows_move_2(element, buffer, rows, length, down, right, to_operand);
    else if (o->size == 4)
        rows_move_4(element, buffer, rows, length, down, right, to_operand);
    else if (o->size == 8)
        rows_move_8(element, buffer, rows, length, down, right, to_operand);
    else
        rows_move_16(element, buffer, rows, length, down, right, to_operand);
    c->index[last - 1] += rows - 1;
    c->offset += (rows - 1) * down;
    cursor_advance(c, o, length);
    return rows * length;
}

/* Between elements [at, at + n) of a strided operand and a contiguous buffer of its type. */
static void operand_move(const operand *o, i64 at, i64 n, char *buffer, int to_operand)
{
    cursor c;
    cursor_seek(&c, o, at);
    const int last = o->ndim - 1;
    const i64 stride = o->strides[last];
    while (n > 0) {
        const i64 moved = operand_rows(o, &c, n, buffer, to_operand);
        buffer += moved * o->size;
        n -= moved;
        if (moved) continue;
        const i64 run = min(n, o->shape[last] - c.index[last]);
        char *element = o->base + c.offset * o->size;
        const int good = OPERAND_INSIDE(o, c.offset, stride, run);
        if (good && to_operand)
            strided_copy(element, stride, buffer, 1, run, o->size);
        else if (good)
            strided_copy(buffer, 1, element, stride, run, o->size);
        buffer += run * o->size;
        n -= run;
        if (n > 0) cursor_advance(&c, o, run);
    }
}

/* The address of element `at` if [at, at + n) are neighbours, else NULL. */
static char *operand_neighbours(const operand *o, i64 at, i64 n)
{
    if (o->ndim == 0) return operand_address(o, at, n);
    if (o->strides[o->ndim - 1] != 1) return NULL;
    i64 length = 1; /* of the rows that lie one behind the other, as one */
    for (int d = o->ndim - 1; d >= 0 && o->strides[d] == length; d--) length *= o->shape[d];
    if (at % length + n > length) return NULL;
    cursor c;
    cursor_seek(&c, o, at);
    return operand_address(o, c.offset, n);
}
