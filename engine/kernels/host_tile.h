/* Element-wise kernels over operands of which one lies across the others, such as a transposed one; see
 * host_run.h, which includes this.
 *
 * A row of the result would take one element from each cache line of such an operand. So the two axes are cut
 * into tiles: of the operand, a tile's columns are read as the neighbours that they are, into a buffer that
 * has the tile's rows. */

/* The longest column of a tile. */
#define TILE_ROWS 64

/* How a launch is cut; axes of the index space, lengths in elements. */
typedef struct tiling {
    i64 n; /* elements of the index space */
    const i64 *shape;
    int across, last; /* rows lie along `last`, columns along `across` */
    i64 rows, columns;
    i64 bands, pieces; /* tiles along `across` and along `last` */
} tiling;

/* One tile: the index of its first element. */
typedef struct tile {
    i64 rows, columns;
    i64 index[DRUPE_KERNEL_DIMS];
} tile;

static i64 magnitude(i64 a)
{
    return a < 0 ? -a : a;
}

static void tiling_begin(tiling *t, i64 n, int ndim, const i64 *shape)
{
    t->n = n;
    t->shape = shape;
    t->last = ndim - 1;
    t->across = -1;
}

/* Unless it is found already: the axis along which an operand's elements are nearer than along the last one.
 */
static void tiling_look(tiling *t, const i64 *strides)
{
    if (t->across >= 0) return;
    for (int d = 0; d < t->last; d++) {
        const i64 near = magnitude(strides[d]);
        if (near && near < magnitude(strides[t->across < 0 ? t->last : t->across])) t->across = d;
    }
}

/* Whether to run in tiles; `elements`: how many fit into one. */
static int tiling_cut(tiling *t, i64 elements)
{
    if (t->across < 0 || t->shape[t->across] < 4 || t->shape[t->last] < 4) return 0;
    for (t->rows = 16; t->rows < TILE_ROWS && t->rows * t->rows < elements; t->rows *= 2) {}
    t->columns = elements / t->rows;
    t->bands = (t->shape[t->across] + t->rows - 1) / t->rows;
    t->pieces = (t->shape[t->last] + t->columns - 1) / t->columns;
    return 1;
}

static i64 tiling_count(const tiling *t)
{
    return t->n / (t->shape[t->across] * t->shape[t->last]) * t->bands * t->pieces;
}

static void tile_at(const tiling *t, i64 number, tile *found)
{
    const i64 column = number % t->pieces * t->columns, row = number / t->pieces % t->bands * t->rows;
    i64 rest = number / t->pieces / t->bands;
    found->index[t->last] = column;
    found->index[t->across] = row;
    for (int d = t->last - 1; d >= 0; d--) {
        if (d == t->across) continue;
        found->index[d] = rest % t->shape[d];
        rest /= t->shape[d];
    }
    found->rows = min(t->rows, t->shape[t->across] - row);
    found->columns = min(t->columns, t->shape[t->last] - column);
}

static char *tile_address(const tiling *t, const tile *at, const operand *o)
{
    i64 offset = 0;
    for (int d = 0; d <= t->last; d++) offset += at->index[d] * o->strides[d];
    return o->base + offset * o->size;
}

#define TILE_TURN(name, type)                                                                                \
    static void name(type *to, const type *from, i64 rows, i64 columns, i64 down, i64 right)                 \
    {                                                                                                        \
        for (i64 c = 0; c < columns; c++) {                                                                  \
            const type *column = from + c * right;                                                           \
            for (i64 r = 0; r < rows; r++) to[r * columns + c] = column[r * down];                           \
        }                                                                                                    \
    }
TILE_TURN(tile_turn_1, uint8_t)
TILE_TURN(tile_turn_2, uint16_t)
TILE_TURN(tile_turn_4, uint32_t)
TILE_TURN(tile_turn_8, uint64_t)
TILE_TURN(tile_turn_16, pair)

/* The elements of a tile, as rows one behind the other. */
static void tile_load(const tiling *t, const tile *at, const operand *o, char *to)
{
    const i64 down = o->strides[t->across], right = o->strides[t->last], row = at->columns * o->size;
    const char *from = tile_address(t, at, o);
    if (magnitude(right) <= magnitude(down) || !down) {
        for (i64 r = 0; r < at->rows; r++)
            strided_copy(to + r * row, 1, from + r * down * o->size, right, at->columns, o->size);
        return;
    }
    switch (o->size) {
    case 1: tile_turn_1((uint8_t *)to, (const uint8_t *)from, at->rows, at->columns, down, right); break;
    case 2: tile_turn_2((u16 *)(void *)to, (const void *)from, at->rows, at->columns, down, right); break;
    case 4: tile_turn_4((u32 *)(void *)to, (const void *)from, at->rows, at->columns, down, right); break;
    case 8:
        tile_turn_8((uint64_t *)(void *)to, (const void *)from, at->rows, at->columns, down, right);
        break;
    default: tile_turn_16((pair *)(void *)to, (const void *)from, at->rows, at->columns, down, right);
    }
}

static void tile_store(const tiling *t, const tile *at, const operand *out, const char *from)
{
    const i64 down = out->strides[t->across], right = out->strides[t->last], row = at->columns * out->size;
    char *to = tile_address(t, at, out);
    for (i64 r = 0; r < at->rows; r++)
        strided_copy(to + r * down * out->size, right, from + r * row, 1, at->columns, out->size);
}

/* The tiles of one share; `constants`: bits of inputs that are, in their buffers already. */
static void tiles_run(const tiling *t, const map_kernel *k, i64 from, i64 until, const operand *out,
                      const operand *in, int constants, block *buffers)
{
    const void *sources[DRUPE_KERNEL_INPUTS];
    block result, raw;
    tile at;
    for (i64 number = from; number < until; number++) {
        tile_at(t, number, &at);
        const i64 n = at.rows * at.columns;
        for (int i = 0; i < k->arity; i++) {
            sources[i] = buffers[i].bytes;
            if (constants >> i & 1) continue;
            const int same = SAME(in[i].dtype, k->compute[i]);
            tile_load(t, &at, &in[i], same ? buffers[i].bytes : raw.bytes);
            if (!same) CASTS[in[i].dtype][k->compute[i]](n, buffers[i].bytes, raw.bytes);
        }
        if (k->moves && SAME(out->dtype, k->result)) {
            tile_store(t, &at, out, sources[0]);
            continue;
        }
        k->loop(n, result.bytes, sources);
        const int same = SAME(out->dtype, k->result);
        if (!same) CASTS[k->result][out->dtype](n, raw.bytes, result.bytes);
        tile_store(t, &at, out, same ? result.bytes : raw.bytes);
    }
}
