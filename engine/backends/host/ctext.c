/* C kernels: from the user's text to what a C compiler is given.
 *
 * A kernel becomes a function with one more parameter, the work-item, which get_global_id() looks into.
 * Right behind it, where macros mean what they mean in it and under the same #if, come a loop over
 * work-items and a table of its parameters, whose kinds and sizes the compiler fills in. What is inserted
 * stands on lines of its own, with the user's lines and columns set right behind it, so that messages point
 * into the text as it was given. */
#include "backends/host/code.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NESTED 64u

/* The types of code.h, for texts of both kinds. */
#define TYPES                                                                                                \
    "#line 1 \"drupe.h\"\n"                                                                                  \
    "typedef __SIZE_TYPE__ drupe_size_;\n"                                                                   \
    "typedef struct { drupe_size_ drupe_count_[3], drupe_offset_[3];\n"                                      \
    "  _Bool (*drupe_together_)(void (*)(void *, drupe_size_), void *, drupe_size_);\n"                      \
    "  void (*drupe_barrier_)(void); } drupe_range_;\n"                                                      \
    "typedef struct { int pointer_, scalar_, reads_; unsigned bytes_; const char *name_, *type_; } "         \
    "drupe_param_;\n"                                                                                        \
    "typedef struct { const char *name_; drupe_size_ count_; const drupe_param_ *params_;\n"                 \
    "  void (*run_)(drupe_size_, drupe_size_, drupe_size_, const void *const *); drupe_size_ block_[3]; } "  \
    "drupe_entry_;\n"

/* The numbers are those of drupe_scalar_type. No name here may be one of the user's macros. */
static const char prelude[] = TYPES
    "#include <stddef.h>\n"
    "typedef struct { drupe_size_ drupe_id_[3], drupe_count_[3], drupe_offset_[3]; } drupe_item_;\n"
    "static inline __attribute__((always_inline, unused)) drupe_size_ drupe_at_(const drupe_size_ "
    "*drupe_of_,\n"
    "  unsigned drupe_d_, drupe_size_ drupe_else_) { return drupe_d_ < 3 ? drupe_of_[drupe_d_] : "
    "drupe_else_; }\n"
    "#define get_global_id(d) drupe_at_(drupe_self_.drupe_id_, (d), 0)\n"
    "#define get_global_size(d) drupe_at_(drupe_self_.drupe_count_, (d), 1)\n"
    "#define get_global_offset(d) drupe_at_(drupe_self_.drupe_offset_, (d), 0)\n"
    "#define drupe_case_(T, n) T: n, T *: n, const T *: n, volatile T *: n\n"
    "#define drupe_scalar_(x) _Generic((x), drupe_case_(signed char, 1), drupe_case_(char, 1), \\\n"
    "  drupe_case_(unsigned char, 2), drupe_case_(_Bool, 2), drupe_case_(short, 3), \\\n"
    "  drupe_case_(unsigned short, 4), drupe_case_(int, 5), drupe_case_(unsigned, 6), \\\n"
    "  drupe_case_(long, 7), drupe_case_(unsigned long, 8), drupe_case_(long long, 7), \\\n"
    "  drupe_case_(unsigned long long, 8), drupe_case_(float, 10), drupe_case_(double, 11), default: 0)\n"
    "#define drupe_const_(T) const T *: 1\n"
    "#define drupe_reads_(x) _Generic((x), drupe_const_(void), drupe_const_(signed char), \\\n"
    "  drupe_const_(char), drupe_const_(unsigned char), drupe_const_(_Bool), drupe_const_(short), \\\n"
    "  drupe_const_(unsigned short), drupe_const_(int), drupe_const_(unsigned), drupe_const_(long), \\\n"
    "  drupe_const_(unsigned long), drupe_const_(long long), drupe_const_(unsigned long long), \\\n"
    "  drupe_const_(float), drupe_const_(double), default: 0)\n";

/* `local` means nothing in the head of a kernel, and memory of the group elsewhere. */
#define LOCAL_IN_HEAD "\n#undef local\n#undef __local\n#define local\n#define __local\n"
#define LOCAL_IN_BODY                                                                                        \
    "\n#undef local\n#undef __local\n#define local static __thread\n#define __local static __thread\n"

_Static_assert(DRUPE_SCALAR_I8 == 1 && DRUPE_SCALAR_I64 == 7 && DRUPE_SCALAR_F32 == 10 &&
                   DRUPE_SCALAR_F64 == 11,
               "the text repeats the numbers");

typedef struct scan {
    const char *text;
    size_t size, at;
    drupe_text *out;
    drupe_text loop;     /* what follows the kernel whose body is being read */
    drupe_text entries;  /* what follows the text */
    drupe_text values;   /* with groups: where the arguments of a kernel are */
    const size_t *block; /* the size of groups, or NULL */
    size_t copied;       /* of the text, so far */
    size_t count;
    size_t depth;              /* in braces */
    size_t outer[MOST_NESTED]; /* depth before each #if that is open */
    size_t nested;
} scan;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* --- Over what is no code --------------------------------------------------------------------------------
 */

static void skip_line(scan *s)
{
    while (s->at < s->size && s->text[s->at] != '\n') s->at += s->text[s->at] == '\\' ? 2 : 1;
    if (s->at > s->size) s->at = s->size;
}

static void skip_quoted(scan *s)
{
    char quote = s->text[s->at++];
    while (s->at < s->size && s->text[s->at] != quote && s->text[s->at] != '\n')
        s->at += s->text[s->at] == '\\' ? 2 : 1;
    if (s->at >= s->size)
        s->at = s->size;
    else if (s->text[s->at] == quote)
        s->at++;
}

static bool begins(const scan *s, const char *word)
{
    size_t length = strlen(word);
    return s->size - s->at >= length && memcmp(s->text + s->at, word, length) == 0;
}

static bool skip_comment(scan *s)
{
    if (begins(s, "//")) {
        skip_line(s);
        return true;
    }
    if (!begins(s, "/*")) return false;
    const char *end = memmem(s->text + s->at + 2, s->size - s->at - 2, "*/", 2);
    s->at = end ? (size_t)(end + 2 - s->text) : s->size;
    return true;
}

/* Each branch of an #if begins at the depth at which the first one began. */
static void follow_branch(scan *s)
{
    if (begins(s, "if")) {
        if (s->nested < MOST_NESTED) s->outer[s->nested] = s->depth;
        s->nested++;
    } else if (s->nested && begins(s, "el")) {
        if (s->nested <= MOST_NESTED) s->depth = s->outer[s->nested - 1];
    } else if (s->nested && begins(s, "endif")) {
        s->nested--;
    }
}

/* A line of the preprocessor, with the comments that go on behind it. */
static void skip_directive(scan *s)
{
    s->at++;
    while (s->at < s->size && (s->text[s->at] == ' ' || s->text[s->at] == '\t')) s->at++;
    follow_branch(s);
    while (s->at < s->size && s->text[s->at] != '\n') {
        if (skip_comment(s)) continue;
        if (s->text[s->at] == '"' || s->text[s->at] == '\'')
            skip_quoted(s);
        else
            s->at += s->text[s->at] == '\\' ? 2 : 1;
    }
    if (s->at > s->size) s->at = s->size;
}

/* Past one comment, literal or preprocessor line; false if there is none here. */
static bool skip_other(scan *s)
{
    char c = s->text[s->at];
    if (c == '"' || c == '\'')
        skip_quoted(s);
    else if (c == '#')
        skip_directive(s);
    else
        return skip_comment(s);
    return true;
}

static void skip_space(scan *s)
{
    while (s->at < s->size) {
        if (isspace((unsigned char)s->text[s->at]))
            s->at++;
        else if (!skip_other(s))
            break;
    }
}

/* The word that begins here, past the space before it; its length, 0 for none. */
static size_t next_word(scan *s, size_t *begin)
{
    skip_space(s);
    *begin = s->at;
    while (s->at < s->size && is_word(s->text[s->at])) s->at++;
    return s->at - *begin;
}

static bool word_is(const scan *s, size_t begin, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(s->text + begin, word, length) == 0;
}

/* --- What is given to the compiler -----------------------------------------------------------------------
 */

static void copy_until(scan *s, size_t end)
{
    drupe_text_append(s->out, s->text + s->copied, end - s->copied);
    s->copied = end;
}

/* Go on in the user's text at this line and column. */
static void resume(scan *s, size_t at)
{
    size_t line = 1, begin = at;
    for (size_t i = 0; i < at; i++) line += s->text[i] == '\n';
    while (begin > 0 && s->text[begin - 1] != '\n') begin--;
    drupe_text_printf(s->out, "\n#line %zu \"program.c\"\n", line);
    for (; begin < at; begin++) drupe_text_append(s->out, s->text[begin] == '\t' ? "\t" : " ", 1);
    s->copied = at;
}

/* --- Parameters ------------------------------------------------------------------------------------------
 */

typedef struct param {
    char type[256], name[64];
    bool array, local;
} param;

static drupe_status refuse_param(const char *kernel, size_t index, const char *why)
{
    return drupe_error_set(DRUPE_E_BUILD_FAILED, "program.c: kernel '%s', parameter %zu: %s.", kernel, index,
                           why);
}

/* "const float *restrict x" into its type and its name. */
static drupe_status split_param(const scan *s, const char *kernel, size_t index, char *text, param *p)
{
    static const char *const opencl[] = {"global", "__global", "local", "__local", "constant", "__constant"};
    char first[16];
    p->local = s->block && drupe_host_groups_local(text);
    if (!p->local && sscanf(text, " %15[A-Za-z0-9_]", first) == 1) {
        for (size_t i = 0; i < DRUPE_COUNT_OF(opencl); i++) {
            if (strcmp(first, opencl[i]) != 0) continue;
            return drupe_error_set(DRUPE_E_UNSUPPORTED,
                                   "The kernel '%s' is OpenCL C ('%s'), not C. Build it for "
                                   "drupe.Device(\"opencl:cpu\"), which uses the same processor.%s",
                                   kernel, first, strstr(first, "local") ? " " DRUPE_HOST_GROUPS_ADVICE : "");
        }
    }
    if (strchr(text, '(')) return refuse_param(kernel, index, "functions cannot be given to a kernel");
    char *bracket = strchr(text, '[');
    p->array = bracket != NULL;
    size_t end = bracket ? (size_t)(bracket - text) : strlen(text);
    while (end > 0 && isspace((unsigned char)text[end - 1])) end--;
    size_t begin = end;
    while (begin > 0 && is_word(text[begin - 1])) begin--;
    int name_length = (int)(end - begin);
    size_t left = 0;
    while (left < begin && isspace((unsigned char)text[left])) left++;
    while (begin > left && isspace((unsigned char)text[begin - 1])) begin--;
    if (name_length == 0 || left == begin) return refuse_param(kernel, index, "it has no name");
    if (begin - left >= sizeof p->type - 2 || name_length >= (int)sizeof p->name)
        return refuse_param(kernel, index, "its type or name is too long");
    snprintf(p->type, sizeof p->type, "%.*s%s", (int)(begin - left), text + left, p->array ? " *" : "");
    snprintf(p->name, sizeof p->name, "%.*s", name_length, text + end - name_length);
    return DRUPE_OK;
}

/* The same with groups, whose work-items find the arguments by address. */
static void add_group_param(scan *s, drupe_text *table, drupe_text *call, size_t index, const param *p)
{
    if (p->local) {
        drupe_text_printf(&s->loop,
                          "  __typeof__(%s) drupe_a%zu_ = __builtin_alloca_with_align(*(const drupe_size_ "
                          "*)drupe_args_[%zu], 512);\n",
                          p->type, index, index + 1);
        drupe_text_printf(table, "  {2, drupe_scalar_(*(%s *)0), 0, 0, \"%s\", \"local %s\"},\n", p->type,
                          p->name, p->type);
    }
    drupe_text_printf(&s->values, ", (void *)&drupe_a%zu_", index);
    drupe_text_printf(call, ", *(__typeof__(%s) *)drupe_v_[%zu]", p->type, index + 2);
}

/* One parameter's part of the loop and of the table. */
static void add_param(scan *s, drupe_text *table, drupe_text *call, size_t index, const param *p)
{
    if (s->block) add_group_param(s, table, call, index, p);
    if (p->local) return;
    drupe_text_printf(&s->loop, "  __typeof__(%s) drupe_a%zu_ = *(%s const *)drupe_args_[%zu];\n", p->type,
                      index, p->type, index + 1);
    drupe_text_printf(table,
                      "  {__builtin_classify_type(*(%s *)0) == 5, drupe_scalar_(*(%s *)0), "
                      "drupe_reads_(*(%s *)0), sizeof(%s), \"%s\", \"%s\"},\n",
                      p->type, p->type, p->type, p->type, p->name, p->type);
    if (!s->block) drupe_text_printf(call, ", drupe_a%zu_", index);
}

static bool is_nothing(const char *params)
{
    char first[8] = "", more[2] = "";
    return sscanf(params, " %7s %1s", first, more) < 1 || (strcmp(first, "void") == 0 && !more[0]);
}

/* The parameters between the parentheses, without comments; *count of them. */
static drupe_status read_params(scan *s, const char *kernel, char *text, drupe_text *table, drupe_text *call,
                                size_t *count)
{
    *count = 0;
    if (is_nothing(text)) return DRUPE_OK;
    for (char *next = text; next;) {
        char *one = next;
        next = strchr(one, ',');
        if (next) *next++ = '\0';
        param p;
        DRUPE_TRY(split_param(s, kernel, *count, one, &p));
        add_param(s, table, call, (*count)++, &p);
        if (*count > DRUPE_HOST_PARAMS) return refuse_param(kernel, *count, "there are too many");
    }
    return DRUPE_OK;
}

/* --- Kernels ---------------------------------------------------------------------------------------------
 */

static void add_items(scan *s, const char *name, const drupe_text *call)
{
    drupe_text_printf(
        &s->loop,
        "  const drupe_range_ *drupe_r_ = drupe_args_[0];\n  (void)drupe_n_;\n"
        "  while (drupe_begin_ < drupe_end_) {\n"
        "    drupe_size_ drupe_w_ = drupe_r_->drupe_count_[0];\n"
        "    drupe_size_ drupe_h_ = drupe_r_->drupe_count_[1];\n"
        "    drupe_size_ drupe_x_ = drupe_begin_ %% drupe_w_, drupe_row_ = drupe_begin_ / drupe_w_;\n"
        "    drupe_size_ drupe_left_ = drupe_end_ - drupe_begin_;\n"
        "    drupe_size_ drupe_run_ = drupe_w_ - drupe_x_ < drupe_left_ ? drupe_w_ - drupe_x_ : "
        "drupe_left_;\n"
        "    drupe_item_ drupe_item = {{0, drupe_row_ %% drupe_h_ + drupe_r_->drupe_offset_[1],\n"
        "      drupe_row_ / drupe_h_ + drupe_r_->drupe_offset_[2]},\n"
        "      {drupe_w_, drupe_h_, drupe_r_->drupe_count_[2]},\n"
        "      {drupe_r_->drupe_offset_[0], drupe_r_->drupe_offset_[1], drupe_r_->drupe_offset_[2]}};\n"
        "    for (drupe_size_ drupe_i_ = 0; drupe_i_ < drupe_run_; drupe_i_++) {\n"
        "      drupe_item.drupe_id_[0] = drupe_x_ + drupe_i_ + drupe_r_->drupe_offset_[0];\n"
        "      %s(drupe_item%s);\n    }\n    drupe_begin_ += drupe_run_;\n  }\n}\n",
        name, drupe_text_get(call));
}

static void add_loop(scan *s, const char *name, size_t count, const drupe_text *table, const drupe_text *call)
{
    static const size_t none[3] = {0, 0, 0};
    const size_t *block = s->block ? s->block : none;
    if (s->block)
        drupe_host_groups_loop(&s->loop, name, s->block, drupe_text_get(&s->values), drupe_text_get(call));
    else
        add_items(s, name, call);
    drupe_text_printf(&s->loop,
                      "static const drupe_param_ drupe_params_%s[] = {\n%s  {0, 0, 0, 0, 0, 0}};\n"
                      "#define drupe_has_%zu_\n",
                      name, drupe_text_get(table), s->count);
    drupe_text_printf(&s->entries,
                      "#ifdef drupe_has_%zu_\n  {\"%s\", %zu, drupe_params_%s, drupe_run_%s, {%zu, %zu, "
                      "%zu}},\n#endif\n",
                      s->count, name, count, name, name, block[0], block[1], block[2]);
    s->count++;
}

/* Writes what follows the kernel. */
static drupe_status add_kernel(scan *s, const char *name, char *params)
{
    drupe_text table = {0}, call = {0};
    size_t count;
    drupe_text_clear(&s->values);
    if (s->block)
        drupe_text_printf(&s->loop, "\n#line 1 \"drupe\"\nstatic void drupe_one_%s(void *, drupe_size_);\n",
                          name);
    drupe_text_printf(&s->loop,
                      "\n#line 1 \"drupe\"\n"
                      "static void drupe_run_%s(drupe_size_ drupe_begin_, drupe_size_ drupe_end_,\n"
                      "  drupe_size_ drupe_n_, const void *const *drupe_args_)\n{\n",
                      name);
    drupe_status status = read_params(s, name, params, &table, &call, &count);
    if (status == DRUPE_OK) add_loop(s, name, count, &table, &call);
    if (status == DRUPE_OK) status = drupe_text_check(&table);
    if (status == DRUPE_OK) status = drupe_text_check(&call);
    drupe_text_clear(&table);
    drupe_text_clear(&call);
    return status;
}

/* Behind the brace that ends a kernel. */
static drupe_status end_kernel(scan *s)
{
    copy_until(s, s->at);
    drupe_text_append(s->out, s->loop.data, s->loop.length);
    drupe_status status = drupe_text_check(&s->loop);
    drupe_text_clear(&s->loop);
    resume(s, s->at);
    return status;
}

/* The text up to the closing parenthesis, without comments, *taken* by the caller; NULL if there is none. */
static char *params_text(scan *s)
{
    size_t capacity = s->size - s->at + 1, length = 0, depth = 1;
    char *text = malloc(capacity);
    while (text && s->at < s->size) {
        char c = s->text[s->at];
        if (skip_other(s)) {
            c = ' ';
        } else {
            depth += c == '(' ? 1 : 0;
            depth -= c == ')' ? 1 : 0;
            if (depth == 0) break;
            s->at++;
        }
        text[length++] = isspace((unsigned char)c) ? ' ' : c;
    }
    if (text) text[length] = '\0';
    if (depth == 0 && length < DRUPE_HOST_PARAMS * 300) return text;
    free(text);
    return NULL;
}

/* Behind the word "kernel", which begins at `begin`. */
static drupe_status read_kernel(scan *s, size_t begin)
{
    char name[64];
    size_t at, length = next_word(s, &at);
    if (!word_is(s, at, length, "void")) return DRUPE_OK;
    size_t void_at = at;
    length = next_word(s, &at);
    if (length == 0 || length >= sizeof name) return DRUPE_OK;
    snprintf(name, sizeof name, "%.*s", (int)length, s->text + at);
    skip_space(s);
    if (s->at >= s->size || s->text[s->at] != '(') return DRUPE_OK;
    size_t open = ++s->at;
    char *params = params_text(s);
    if (!params)
        return drupe_error_set(DRUPE_E_BUILD_FAILED, "program.c: the head of '%s' does not end.", name);
    size_t close = s->at++;
    skip_space(s);
    copy_until(s, begin);
    drupe_text_printf(s->out, "%s\nstatic inline __attribute__((always_inline))",
                      s->block ? LOCAL_IN_HEAD : "");
    resume(s, void_at);
    copy_until(s, open);
    bool none = is_nothing(params);
    drupe_text_printf(s->out, "const drupe_item_ drupe_self_%s", none ? "" : ",");
    resume(s, none ? close : open);
    if (s->block) {
        copy_until(s, s->at);
        drupe_text_printf(s->out, "%s", LOCAL_IN_BODY);
        resume(s, s->at);
    }
    drupe_status status = DRUPE_OK;
    if (s->at < s->size && s->text[s->at] == '{') {
        status = s->loop.length
                     ? drupe_error_set(DRUPE_E_BUILD_FAILED,
                                       "program.c: '%s' begins before the kernel before it ends. Give "
                                       "each branch of an #if its whole kernel.",
                                       name)
                     : add_kernel(s, name, params);
    }
    free(params);
    return status;
}

/* Whether what follows the word `local` is a pointer to memory of the group, which is a pointer like any
 * other; else it is such memory itself. */
static bool points(scan *s)
{
    const size_t begin = s->at;
    while (s->at < s->size) {
        if (skip_comment(s)) continue;
        if (!is_word(s->text[s->at]) && !isspace((unsigned char)s->text[s->at])) break;
        s->at++;
    }
    const bool found = begins(s, "*") || begins(s, ")") || begins(s, "(*");
    s->at = begin;
    return found;
}

static void read_local(scan *s, size_t begin)
{
    if (!points(s)) return;
    copy_until(s, begin);
    drupe_text_printf(s->out, "%*s", (int)(s->at - begin), "");
    s->copied = s->at;
}

/* A kernel, or OpenCL C, or memory of the group, or nothing of interest. */
static drupe_status read_word(scan *s)
{
    size_t begin, length = next_word(s, &begin);
    if (word_is(s, begin, length, "__kernel")) {
        return drupe_error_set(DRUPE_E_UNSUPPORTED,
                               "This is OpenCL C ('__kernel'), not C. Build it for "
                               "drupe.Device(\"opencl:cpu\"), which uses the same processor.");
    }
    if (s->block && (word_is(s, begin, length, "local") || word_is(s, begin, length, "__local")))
        read_local(s, begin);
    return s->depth == 0 && word_is(s, begin, length, "kernel") ? read_kernel(s, begin) : DRUPE_OK;
}

static drupe_status read_text(scan *s)
{
    while (s->at < s->size) {
        char c = s->text[s->at];
        if (skip_other(s)) continue;
        if (is_word(c)) {
            DRUPE_TRY(read_word(s));
            continue;
        }
        s->at++;
        s->depth += c == '{' ? 1 : 0;
        if (c != '}' || s->depth == 0) continue;
        if (--s->depth == 0 && s->loop.length) DRUPE_TRY(end_kernel(s));
    }
    if (s->count) return DRUPE_OK;
    return drupe_error_set(DRUPE_E_BUILD_FAILED,
                           "program.c: there is no kernel. Write one as a function such as 'kernel void "
                           "name(float *x, int n) { ... get_global_id(0) ... }'.");
}

static drupe_status check_text(const char *text, size_t size)
{
    return memchr(text, 0, size) ? drupe_error_set(DRUPE_E_INVALID, "The program has a NUL in it.")
                                 : DRUPE_OK;
}

/* What is exported beside the table. */
static void add_machine(drupe_text *out)
{
    drupe_text_printf(out,
                      "__attribute__((visibility(\"default\"))) extern const char %s[];\n"
                      "const char %s[] = \"%s\";\n",
                      DRUPE_HOST_MADE_FOR, DRUPE_HOST_MADE_FOR, drupe_host_features());
}

/* Atomics for texts with tables: the quick compiler has them as functions of its own. */
static const char atomics[] =
    "#define drupe_atomics_(T, N) \\\n"
    "  drupe_inline_ T drupe_load##N##_(const volatile void *p) drupe_is_(return __atomic_load_n((T *)p, "
    "5);) "
    "\\\n"
    "  drupe_inline_ void drupe_store##N##_(volatile void *p, T v) drupe_is_(__atomic_store_n((T *)p, v, "
    "5);) "
    "\\\n"
    "  drupe_inline_ T drupe_swap##N##_(volatile void *p, T v) drupe_is_(return __atomic_exchange_n((T *)p, "
    "v, "
    "5);) \\\n"
    "  drupe_inline_ T drupe_add##N##_(volatile void *p, T v) drupe_is_(return __atomic_fetch_add((T *)p, v, "
    "5);) \\\n"
    "  drupe_inline_ T drupe_cas##N##_(volatile void *p, T e, T v) \\\n"
    "    drupe_is_(__atomic_compare_exchange_n((T *)p, &e, v, 0, 5, 5); return e;)\n"
    "drupe_atomics_(unsigned, 32)\n"
    "drupe_atomics_(unsigned long long, 64)\n"
    "drupe_inline_ void drupe_fence_(void) drupe_is_(__atomic_thread_fence(5);)\n";

drupe_status drupe_host_code_table(const char *text, size_t size, bool quick, drupe_text *out)
{
    DRUPE_TRY(check_text(text, size));
    drupe_text_printf(out,
                      "%s%s%s#define drupe_entries_ %s\n"
                      "__attribute__((visibility(\"default\"))) extern const drupe_entry_ drupe_entries_[];\n"
                      "#line 1 \"program.c\"\n",
                      TYPES,
                      quick ? "#define drupe_inline_\n#define drupe_is_(...) ;\n"
                            : "#define drupe_inline_ static inline __attribute__((unused))\n"
                              "#define drupe_is_(...) { __VA_ARGS__ }\n",
                      atomics, DRUPE_HOST_TABLE);
    drupe_text_append(out, text, size);
    if (!quick) {
        drupe_text_printf(out, "\n#line 1 \"drupe\"\n");
        add_machine(out);
    }
    return drupe_text_check(out);
}

drupe_status drupe_host_code_text(const char *text, size_t size, const size_t block[3], drupe_text *out)
{
    scan s = {.text = text, .size = size, .out = out, .block = block && block[0] ? block : NULL};
    drupe_status status = check_text(text, size);
    drupe_text_printf(out, "%s", prelude);
    if (status == DRUPE_OK && s.block) status = drupe_host_groups_begin(s.block, out);
    drupe_text_printf(out, "#line 1 \"program.c\"\n");
    if (status == DRUPE_OK) status = read_text(&s);
    if (status == DRUPE_OK) {
        copy_until(&s, size);
        drupe_text_printf(out,
                          "\n#line 1 \"drupe\"\n"
                          "__attribute__((visibility(\"default\"))) extern const drupe_entry_ %s[];\n"
                          "const drupe_entry_ %s[] = {\n%s  {0, 0, 0, 0}};\n",
                          DRUPE_HOST_TABLE, DRUPE_HOST_TABLE, drupe_text_get(&s.entries));
        add_machine(out);
        status = drupe_text_check(&s.entries);
    }
    if (status == DRUPE_OK) status = drupe_text_check(out);
    drupe_text_clear(&s.loop);
    drupe_text_clear(&s.values);
    drupe_text_clear(&s.entries);
    return status;
}
