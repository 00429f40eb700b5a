/* What a kernel in C may hold when it faults, by the functions that its library takes from others.
 *
 * One that computes, copies and compares only takes no lock, allocates nothing and shows its stack to nobody:
 * a thread may leave it at any instruction. One that also prints or allocates may do so at instructions of
 * its own; inside of the C library it may hold a lock. Of other functions nothing is known: they may start
 * threads that look into the caller's stack. */
#include "backends/host/code.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

static const char *const innocent[] = {"__cxa_finalize",
                                       "__gmon_start__",
                                       "_ITM_deregisterTMCloneTable",
                                       "_ITM_registerTMCloneTable",
                                       "__stack_chk_fail",
                                       "__errno_location",
                                       "__getauxval", /* of libgcc, before atomics of AArch64 */
                                       "__tls_get_addr",
                                       "__ctype_b_loc",
                                       "__ctype_tolower_loc",
                                       "__ctype_toupper_loc",
                                       "abort",
                                       "__assert_fail",
                                       "abs",
                                       "labs",
                                       "llabs",
                                       "div",
                                       "ldiv",
                                       "lldiv",
                                       "atoi",
                                       "atol",
                                       "atoll",
                                       "rand_r",
                                       "tolower",
                                       "toupper",
                                       "memcpy",
                                       "memmove",
                                       "memset",
                                       "memcmp",
                                       "memchr",
                                       "memrchr",
                                       "memmem",
                                       "mempcpy",
                                       "strlen",
                                       "strnlen",
                                       "strcpy",
                                       "strncpy",
                                       "stpcpy",
                                       "strcat",
                                       "strncat",
                                       "strcmp",
                                       "strncmp",
                                       "strchr",
                                       "strrchr",
                                       "strstr",
                                       "strspn",
                                       "strcspn",
                                       "strpbrk",
                                       "__memcpy_chk",
                                       "__memmove_chk",
                                       "__memset_chk",
                                       "__strcpy_chk",
                                       "__strncpy_chk",
                                       "__strcat_chk",
                                       "__strncat_chk",
                                       "sched_yield",
                                       "nanosleep",
                                       "usleep",
                                       "clock_gettime",
                                       "time"};

static const char *const locking[] = {"stdin",
                                      "stdout",
                                      "stderr",
                                      "printf",
                                      "vprintf",
                                      "fprintf",
                                      "vfprintf",
                                      "sprintf",
                                      "vsprintf",
                                      "snprintf",
                                      "vsnprintf",
                                      "dprintf",
                                      "puts",
                                      "putchar",
                                      "putc",
                                      "fputs",
                                      "fputc",
                                      "fwrite",
                                      "fflush",
                                      "sscanf",
                                      "__printf_chk",
                                      "__fprintf_chk",
                                      "__vfprintf_chk",
                                      "__sprintf_chk",
                                      "__snprintf_chk",
                                      "__vsnprintf_chk",
                                      "__isoc99_sscanf",
                                      "__isoc23_sscanf",
                                      "malloc",
                                      "calloc",
                                      "realloc",
                                      "free",
                                      "aligned_alloc",
                                      "posix_memalign",
                                      "strdup",
                                      "strndup",
                                      "strtol",
                                      "strtoul",
                                      "strtod",
                                      "strtof",
                                      "atof",
                                      "rand",
                                      "srand",
                                      "random",
                                      "srandom",
                                      "drand48",
                                      "srand48",
                                      "erand48",
                                      "lrand48",
                                      "getenv",
                                      "clock"};

static bool is_listed(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, list[i]) == 0) return true;
    }
    return false;
}

static bool is_of_libm(const drupe_host_code *code, const char *name)
{
    Dl_info found;
    const void *address = dlsym(code->library, name);
    if (!address || !dladdr(address, &found) || !found.dli_fname) return false;
    const char *slash = strrchr(found.dli_fname, '/');
    const char *file = slash ? slash + 1 : found.dli_fname;
    return strncmp(file, "libm.so", 7) == 0 || strncmp(file, "libmvec.so", 10) == 0;
}

static drupe_way way_past(const drupe_host_code *code, const char *name)
{
    if (is_listed(name, innocent, DRUPE_COUNT_OF(innocent)) || is_of_libm(code, name)) return DRUPE_WAY_ON;
    return is_listed(name, locking, DRUPE_COUNT_OF(locking)) ? DRUPE_WAY_ON_INSIDE : DRUPE_WAY_PARK;
}

/* --- The file --------------------------------------------------------------------------------------------
 */

/* `size` bytes at `offset`, or NULL when they lie outside. */
static const void *part(const drupe_host_code *code, uint64_t offset, uint64_t size)
{
    bool inside = offset <= code->size && size <= code->size - offset && offset % 8 == 0;
    return inside ? (const char *)code->bytes + offset : NULL;
}

static void find_code(drupe_host_code *code, const ElfW(Ehdr) * head)
{
    const struct link_map *map = NULL;
    const ElfW(Phdr) *segments = part(code, head->e_phoff, (uint64_t)head->e_phnum * sizeof *segments);
    if (!segments || dlinfo(code->library, RTLD_DI_LINKMAP, &map) != 0 || !map) return;
    for (size_t i = 0; i < head->e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X)) continue;
        code->recovery.code = (uintptr_t)map->l_addr + segments[i].p_vaddr;
        code->recovery.code_size = segments[i].p_memsz;
        return;
    }
}

/* The worst of what its undefined symbols allow. */
static drupe_way judge_symbols(const drupe_host_code *code, const ElfW(Shdr) * table,
                               const ElfW(Shdr) * names)
{
    const ElfW(Sym) *symbols = part(code, table->sh_offset, table->sh_size);
    const char *text = part(code, names->sh_offset & ~UINT64_C(7), names->sh_size + (names->sh_offset & 7));
    drupe_way way = DRUPE_WAY_ON;
    if (!symbols || !text || !names->sh_size) return DRUPE_WAY_PARK;
    text += names->sh_offset & 7;
    if (text[names->sh_size - 1]) return DRUPE_WAY_PARK;
    for (size_t i = 1; i < table->sh_size / sizeof *symbols; i++) {
        if (symbols[i].st_shndx != SHN_UNDEF) continue;
        if (symbols[i].st_name >= names->sh_size) return DRUPE_WAY_PARK;
        drupe_way one = way_past(code, text + symbols[i].st_name);
        if (one < way) way = one;
    }
    return way;
}

void drupe_host_code_judge(drupe_host_code *code)
{
    const ElfW(Ehdr) *head = part(code, 0, sizeof *head);
    code->recovery.way = DRUPE_WAY_PARK;
    if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return;
    const ElfW(Shdr) *sections = part(code, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections);
    for (size_t i = 0; sections && i < head->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= head->e_shnum) continue;
        find_code(code, head);
        code->recovery.way = judge_symbols(code, &sections[i], &sections[sections[i].sh_link]);
        return;
    }
}
