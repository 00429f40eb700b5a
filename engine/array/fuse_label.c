/* What a kernel of several operations is called: "sqrt, multiply, add: lines 3-4".
 *
 * A submission has one place, that of its last operation. Its label tells the lines of all where there are
 * several, since labels are shown wherever places are: in traces, views, profiles and messages of failures.
 */
#include "array/node.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_MOST 96
#define LINES_MOST 36 /* bytes of the label that lines may take */

/* --- Operations ------------------------------------------------------------------------------------------
 */

#define COUNTED 3 /* so many of one kind in a row are "add x3" */

static int op_at(const drupe_fused *fused, int s)
{
    return s < fused->nsteps ? fused->steps[s].op : fused->reduction.op;
}

static void name_steps(const drupe_fused *fused, char *text, size_t size)
{
    const int count = fused->nsteps + (fused->reduction.op >= 0);
    size_t used = 0;
    text[0] = '\0';
    for (int s = 0, next; s < count; s = next) {
        char name[40] = "";
        for (next = s + 1; next < count && op_at(fused, next) == op_at(fused, s);) next++;
        if (next - s < COUNTED) next = s + 1;
        const char *comma = s ? ", " : "", *op = drupe_op_row(op_at(fused, s))->name;
        const int length = next > s + 1 ? snprintf(name, sizeof name, "%s%s x%d", comma, op, next - s)
                                        : snprintf(name, sizeof name, "%s%s", comma, op);
        /* Behind all but the last there has to be room for the dots. */
        if (used + (size_t)length + (next < count ? sizeof ", ..." - 1 : 0) > size - 1) {
            snprintf(text + used, size - used, "%s...", comma);
            return;
        }
        used += (size_t)snprintf(text + used, size - used, "%s", name);
    }
}

/* --- Lines -----------------------------------------------------------------------------------------------
 */

/* A text such as "cell [3], line 7 of tools.py" is this line, and what is around it. */
typedef struct place {
    char text[PLACE_MOST];
    size_t before; /* bytes in front of the number */
    const char *behind;
    unsigned long line; /* 0: none is known */
} place;

static void place_read(const drupe_origin *origin, place *at)
{
    drupe_origin_text(origin, at->text, sizeof at->text);
    const char *word = strstr(at->text, "line ");
    at->line = 0;
    if (!word) return;
    char *end;
    at->line = strtoul(word + 5, &end, 10);
    at->before = (size_t)(word + 5 - at->text);
    at->behind = end;
}

static bool same_text(const place *a, const place *b)
{
    return a->before == b->before && memcmp(a->text, b->text, a->before) == 0 &&
           strcmp(a->behind, b->behind) == 0;
}

typedef struct lines {
    unsigned long of[DRUPE_PENDING_MOST + 5]; /* each once, rising */
    int count;
    bool elsewhere; /* others are in other files or cells */
} lines;

static void lines_add(lines *all, unsigned long line)
{
    int at = all->count;
    while (at > 0 && all->of[at - 1] > line) at--;
    if (at > 0 && all->of[at - 1] == line) return;
    memmove(all->of + at + 1, all->of + at, (size_t)(all->count - at) * sizeof *all->of);
    all->of[at] = line;
    all->count++;
}

/* The lines of the nodes that are in the file, or the cell, that the last operation is in. */
static void lines_find(const pending_plan *plan, int from, int to, const drupe_origin *last, lines *all)
{
    place end, at;
    uint32_t site = last->site;
    all->count = 0;
    all->elsewhere = false;
    place_read(last, &end);
    if (!end.line) return;
    lines_add(all, end.line);
    for (int i = from; i < to; i++) {
        const drupe_origin *origin = &plan->nodes[i]->origin;
        if (origin->site == site && origin->cell == last->cell) continue;
        site = origin->cell == last->cell ? origin->site : 0;
        place_read(origin, &at);
        if (at.line && same_text(&at, &end))
            lines_add(all, at.line);
        else if (at.line)
            all->elsewhere = true;
    }
}

/* ": lines 3-4, 9"; nothing where the place of the submission says it. Returns the bytes. */
static size_t lines_text(const lines *all, char *text)
{
    const char *more = all->elsewhere ? " and elsewhere" : "";
    const size_t most = LINES_MOST - strlen(more);
    size_t used = 0;
    text[0] = '\0';
    if (all->count == 0 || (all->count == 1 && !all->elsewhere)) return 0;
    used += (size_t)snprintf(text, LINES_MOST, ": line%s ", all->count > 1 ? "s" : "");
    for (int i = 0, next; i < all->count && used < most; i = next) {
        for (next = i + 1; next < all->count && all->of[next] == all->of[next - 1] + 1;) next++;
        used += (size_t)snprintf(text + used, LINES_MOST - used, next > i + 1 ? "%s%lu-%lu" : "%s%lu",
                                 i ? ", " : "", all->of[i], all->of[next - 1]);
    }
    if (used >= most)
        used = (size_t)snprintf(text, LINES_MOST, ": some of lines %lu-%lu", all->of[0],
                                all->of[all->count - 1]);
    if (used < most) used += (size_t)snprintf(text + used, LINES_MOST - used, "%s", more);
    return used < LINES_MOST ? used : LINES_MOST - 1;
}

/* --- Labels that were made before -------------------------------------------------------------------------
 */

#define REMEMBERED 64 /* kernels: loops make the same ones again and again */

/* What a label depends on, but for the cell, which is the same for all. */
typedef struct maker {
    int count, nsteps;
    uint32_t sites[DRUPE_PENDING_MOST + 5]; /* the last one is that of the submission */
    uint8_t ops[(DRUPE_FUSED_STEPS + 4) / 4 * 4]; /* whole words: it is compared byte by byte */
} maker;

static struct {
    pthread_mutex_t lock;
    struct {
        maker of;
        char label[DRUPE_FUSE_LABEL];
    } labels[REMEMBERED];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Its place among the labels, or -1: its operations are not all of one cell. */
static int maker_make(const pending_plan *plan, int from, int to, const drupe_fused *fused,
                      const drupe_origin *last, maker *of)
{
    uint32_t hash = last->site;
    memset(of, 0, sizeof *of);
    for (int i = from; i < to; i++) {
        const drupe_origin *origin = &plan->nodes[i]->origin;
        if (origin->cell != last->cell) return -1;
        of->sites[of->count++] = origin->site;
        hash = hash * 31 + origin->site;
    }
    of->sites[of->count++] = last->site;
    of->nsteps = fused->nsteps;
    for (int s = 0; s < of->nsteps; s++) of->ops[s] = fused->steps[s].op;
    of->ops[of->nsteps] = (uint8_t)fused->reduction.op;
    return (int)(hash % REMEMBERED);
}

static bool recall(int at, const maker *of, char label[DRUPE_FUSE_LABEL])
{
    pthread_mutex_lock(&known.lock);
    const bool same = memcmp(&known.labels[at].of, of, sizeof *of) == 0;
    if (same) memcpy(label, known.labels[at].label, DRUPE_FUSE_LABEL);
    pthread_mutex_unlock(&known.lock);
    return same;
}

static void remember(int at, const maker *of, const char label[DRUPE_FUSE_LABEL])
{
    pthread_mutex_lock(&known.lock);
    memcpy(&known.labels[at].of, of, sizeof *of); /* its padding, too */
    memcpy(known.labels[at].label, label, DRUPE_FUSE_LABEL);
    pthread_mutex_unlock(&known.lock);
}

void drupe_fuse_label(const pending_plan *plan, int from, int to, const drupe_fused *fused,
                      const drupe_origin *last, char label[DRUPE_FUSE_LABEL])
{
    lines all;
    maker of;
    char where[LINES_MOST];
    const int slot = maker_make(plan, from, to, fused, last, &of);
    if (slot >= 0 && recall(slot, &of, label)) return;
    lines_find(plan, from, to, last, &all);
    const size_t size = lines_text(&all, where);
    name_steps(fused, label, DRUPE_FUSE_LABEL - size);
    memcpy(label + strlen(label), where, size + 1);
    if (slot >= 0) remember(slot, &of, label);
}
