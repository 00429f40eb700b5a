/* kernels [few | gpu]: every generated kernel once under Oclgrind, whose log must be empty.
 *
 * Started without Oclgrind it starts itself under it and looks at the log, after it has seen that a kernel
 * that writes too far does get into the log. Each operation runs in both forms of its kernels, in all
 * layouts, on all pairs of types; with `few` on operands of one type, of which a seventh is taken in turn;
 * with `gpu` not at all. Instrumented, they run on operands of one type, and must report nothing. */
#include "oclgrind/runner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77
#define N       37

/* --- Element-wise --------------------------------------------------------------------------------------- */

static void set_range(const runner *r, launch *l, size_t group)
{
    l->local = r->target.gpu_form ? group : 1;
    l->global = 2 * l->local;
}

static void run_flat(runner *r, launch *l, int arity, drupe_map_head *head)
{
    for (int constants = 0; constants < (1 << arity) - 1; constants++) {
        l->key.layout = head->constants = constants;
        l->spans[0].elements = N;
        for (int i = 0; i < arity; i++) {
            bool constant = constants >> i & 1;
            l->spans[i + 1] = constant ? (span){-1, 1, 0} : (span){l->key.in[i], N, 0};
        }
        l->params = head;
        l->params_size = sizeof *head;
        runner_launch(r, l);
    }
}

/* Three rows of five: a transposed first operand, every other element of a row for the second, a contiguous
 * third. */
static void run_strided(runner *r, launch *l, int arity, const drupe_map_head *head)
{
    drupe_map_params p = {.head = *head, .shape = {3, 5}, .strides = {{7, 1}, {1, 3}, {0, 2}, {5, 1}}};
    p.head.n = 15;
    p.head.ndim = 2;
    p.head.constants = 0;
    l->key.layout = LAYOUT_STRIDED;
    l->spans[0].elements = 2 * 7 + 5;
    l->spans[1] = (span){l->key.in[0], 15, 0};
    l->spans[2] = (span){l->key.in[1], arity > 1 ? 9 : 0, 0};
    l->spans[3] = (span){l->key.in[2], arity > 2 ? 15 : 0, 0};
    l->params = &p;
    l->params_size = sizeof p;
    runner_launch(r, l);
    l->params = NULL;
}

static void run_map(runner *r, int op, const int *in)
{
    const op_row *row = drupe_op_row(op);
    drupe_array arrays[DRUPE_KERNEL_INPUTS];
    drupe_operand operands[DRUPE_KERNEL_INPUTS];
    op_types types;
    for (int i = 0; i < DRUPE_KERNEL_INPUTS; i++) {
        arrays[i] = (drupe_array){.dtype = (drupe_dtype)in[i]};
        operands[i] = (drupe_operand){.array = &arrays[i]};
    }
    if (drupe_op_types(op, operands, (size_t)row->arity, true, &types) != DRUPE_OK) return;
    if (op == OP_COPY) {
        types.result = (drupe_dtype)in[1];
        types.compute = drupe_copy_type((drupe_dtype)in[0], types.result);
    }
    launch l = {.key = {SHAPE_MAP, op, 0, (int)types.compute, (int)types.result, {-1, -1, -1}}};
    for (int i = 0; i < row->arity && i < DRUPE_KERNEL_INPUTS; i++) l.key.in[i] = in[i];
    l.spans[0].dtype = l.key.out;
    set_range(r, &l, 8);
    drupe_map_head head = {.n = N};
    drupe_scalar two = {.kind = DRUPE_SCALAR_KIND_INT, .i = 2};
    for (int i = 0; i < row->arity; i++) {
        const drupe_dtype type = drupe_op_input(row, types.compute, (size_t)i);
        if (drupe_scalar_bytes(&two, type, head.value[i]) != DRUPE_OK) abort();
    }
    run_flat(r, &l, row->arity, &head);
    run_strided(r, &l, row->arity, &head);
}

/* --- Reductions ----------------------------------------------------------------------------------------- */

static void run_reduction(runner *r, int op, int in)
{
    drupe_array array = {.dtype = (drupe_dtype)in};
    drupe_operand operand = {.array = &array};
    op_types types;
    if (drupe_op_types(op, &operand, 1, true, &types) != DRUPE_OK) return;
    const struct {
        int shape, layout;
        drupe_reduce_params p;
        size_t elements;
    } cases[] = {
        {SHAPE_ROW, 0, {3, N, 1, 1, {3}, {N}, 1, 0, 0, 4, 0, 0}, 3 * N},
        {SHAPE_ROW, 0, {3, N, 1, 2, {3}, {N}, 1, 0, 0, 16, 0, 0}, 3 * N},
        {SHAPE_ROW, LAYOUT_STRIDED, {3, N, 3, 1, {3}, {1}, 1, 0, 0, 2, 0, 0}, 3 * N},
        {SHAPE_COLUMN, LAYOUT_STRIDED, {5, 7, 5, 1, {5}, {1}, 1, 0, 0, 0, 0, 0}, 35},
        {SHAPE_COLUMN, LAYOUT_STRIDED, {140, 3, 140, 2, {2, 70}, {70, 1}, 2, 0, 0, 0, 0, 0}, 420},
    };
    for (size_t i = 0; i < DRUPE_COUNT_OF(cases); i++) {
        launch l = {
            .key = {cases[i].shape, op, cases[i].layout, (int)types.compute, (int)types.result, {in, -1, -1}},
            .spans = {{(int)types.result, (size_t)(cases[i].p.outputs * cases[i].p.splits)},
                      {in, cases[i].elements}},
            .params = &cases[i].p,
            .params_size = sizeof cases[i].p};
        set_range(r, &l, 16);
        runner_launch(r, &l);
    }
}

/* --- The others ----------------------------------------------------------------------------------------- */

static void run_matmul(runner *r, int dtype)
{
    const size_t m = 5, n = 70, k = 19;
    drupe_matmul_params p = {(drupe_i64)m, (drupe_i64)n, (drupe_i64)k, (drupe_i64)k, 1, (drupe_i64)n};
    launch l = {.key = {SHAPE_MATMUL, 0, 0, dtype, dtype, {-1, -1, -1}},
                .spans = {{dtype, m * n}, {dtype, m * k}, {dtype, k * n}},
                .params = &p,
                .params_size = sizeof p};
    set_range(r, &l, 1);
    runner_launch(r, &l);
}

static void run_sequence(runner *r, int dtype)
{
    const int kind = drupe_dtype_row((drupe_dtype)dtype)->kind;
    drupe_dtype compute = kind == KIND_COMPLEX ? DRUPE_COMPLEX128
                          : kind == KIND_FLOAT ? DRUPE_FLOAT64
                                               : DRUPE_INT64;
    drupe_scalar three = {.kind = DRUPE_SCALAR_KIND_INT, .i = 3};
    drupe_sequence_params p = {.n = N, .stride = 2};
    if (drupe_scalar_bytes(&three, compute, p.start) != DRUPE_OK) abort();
    memcpy(p.step, p.start, sizeof p.step);
    launch l = {.key = {SHAPE_SEQUENCE, 0, 0, (int)compute, dtype, {-1, -1, -1}},
                .spans = {{dtype, 2 * N - 1}},
                .params = &p,
                .params_size = sizeof p};
    set_range(r, &l, 8);
    runner_launch(r, &l);
}

enum share { ALL, FEW, GPU };

static enum share share_of(const char *word)
{
    return strcmp(word, "few") == 0 ? FEW : strcmp(word, "gpu") == 0 ? GPU : ALL;
}

/* Two types of each kind stand for all, of which the kernels differ in a word. */
static bool taken(int dtype)
{
    static const int left_out[] = {DRUPE_INT8, DRUPE_UINT16, DRUPE_INT16, DRUPE_UINT32, DRUPE_FLOAT64};
    for (size_t i = 0; i < DRUPE_COUNT_OF(left_out); i++)
        if (dtype == left_out[i]) return false;
    return true;
}

static void run_op(runner *r, int op, enum share share)
{
    const bool all = share == ALL && !r->target.checked;
    const op_row *row = drupe_op_row(op);
    for (int a = 0; a < DRUPE_DTYPE_COUNT; a++) {
        if (!taken(a) || (op + a) % 3 == r->target.gpu_form) continue;
        if (share == FEW && (op + 3 * a) % 7 != r->target.gpu_form + 2 * r->target.checked) continue;
        if (row->kind == DRUPE_OP_REDUCTION) {
            run_reduction(r, op, a);
            continue;
        }
        for (int b = 0; b < DRUPE_DTYPE_COUNT; b++) {
            const int in[] = {a, b, b};
            /* A copy's second type is its output's. */
            bool wanted = a == b || (all && row->arity > 1 && (op + a + b) % 7 == 0) ||
                          (op == OP_COPY && (all || b == (a + 1) % DRUPE_DTYPE_COUNT));
            if (wanted) run_map(r, op, in);
        }
    }
}

static int run_all(enum share share)
{
    runner r;
    runner_open(&r);
    for (int form = 0; share != GPU && form < 4; form++) {
        r.target.gpu_form = form % 2;
        r.target.checked = form / 2;
        for (int op = 0; op < OP_TABLE_COUNT; op++) run_op(&r, op, share);
        for (int dtype = 0; dtype < DRUPE_DTYPE_COUNT; dtype++) {
            if (!taken(dtype)) continue;
            if (dtype != DRUPE_FLOAT16 && !r.target.gpu_form) run_matmul(&r, dtype);
            run_sequence(&r, dtype);
        }
    }
    r.target.gpu_form = true;
    r.target.checked = false;
    run_gpu_kernels(&r, share != FEW);
    printf("%zu kernels of %zu programs\n", r.kernels, r.nbuilt);
    runner_close(&r);
    return 0;
}

static int run_trespass(void)
{
    runner r;
    runner_open(&r);
    runner_trespass(&r);
    runner_close(&r);
    return 0;
}

/* --- Under Oclgrind ------------------------------------------------------------------------------------- */

static int start(const char *self, const char *log, const char *what)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("DRUPE_UNDER_OCLGRIND", "1", 1);
        execlp("oclgrind", "oclgrind", "--data-races", "--uninitialized", "--check-api", "--max-errors", "5",
               "--log", log, self, what, (char *)NULL);
        _exit(SKIPPED);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
    return WEXITSTATUS(status);
}

static bool show_log(const char *log, const char *part)
{
    char line[512];
    bool found = false;
    FILE *file = fopen(log, "r");
    while (file && fgets(line, sizeof line, file)) {
        found = found || strstr(line, part);
        if (!*part) fputs(line, stdout);
    }
    if (file) fclose(file);
    return found;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "all";
    if (getenv("DRUPE_UNDER_OCLGRIND"))
        return strcmp(what, "trespass") == 0 ? run_trespass()
                                             : run_all(share_of(what));
    char folder[] = "/tmp/drupe-oclgrind-XXXXXX", log[64];
    if (!mkdtemp(folder)) return 1;
    snprintf(log, sizeof log, "%s/log", folder);
    int code = start(argv[0], log, "trespass");
    if (code == SKIPPED) printf("oclgrind is not installed\n");
    if (code == 0 && !show_log(log, "Invalid write")) {
        printf("Oclgrind did not see a kernel that writes too far\n");
        code = 1;
    }
    unlink(log);
    if (code == 0) code = start(argv[0], log, what);
    struct stat found;
    if (code == 0 && stat(log, &found) == 0 && found.st_size > 0) {
        show_log(log, "");
        code = 1;
    }
    unlink(log);
    rmdir(folder);
    return code;
}
