/* What a kernel in C may hold when it faults, by the functions that its library takes from others.
 *
 * The C library's leave no trace in the kernel's own instructions: there a thread may leave the work. Inside
 * of the C library it may hold a lock. Of other libraries' functions nothing is known, and some of the C
 * library's show the caller's stack to other threads, or call it with a lock held. */
#include "backends/host/code.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

static bool begins_with(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(text, list[i], strlen(list[i])) == 0) return true;
    }
    return false;
}

/* Whether this function, of those that the library sees, is none of the C library's; or is one after which
 * nobody knows who else uses the thread's stack or which locks it holds. */
static bool is_unknown(const drupe_host_code *code, const ElfW(Sym) * symbol, const char *name)
{
    static const char *const files[] = {"libc.", "libm.", "libmvec.", "ld-"};
    static const char *const wild[] = {
        /* threads and processes */
        "pthread_", "thrd_", "mtx_", "cnd_", "call_once", "sem_", "fork", "_Fork", "vfork", "clone",
        "__register_atfork", "syscall", "makecontext", "swapcontext",
        /* somebody else calls the kernel's code, or writes to its stack, later */
        "sig", "aio_", "lio_listio", "getaddrinfo_a", "timer_create", "mq_notify", "setvbuf", "setbuf",
        "atexit", "on_exit",
        /* locks that the caller has then */
        "dl", "fopencookie", "flockfile", "ftrylockfile", "register_printf"};
    Dl_info found;
    const void *address = dlsym(code->library, name);
    if (!address) return ELF64_ST_BIND(symbol->st_info) != STB_WEAK;
    if (!dladdr(address, &found) || !found.dli_fname) return true;
    const char *slash = strrchr(found.dli_fname, '/');
    return !begins_with(slash ? slash + 1 : found.dli_fname, files, DRUPE_COUNT_OF(files)) ||
           begins_with(name, wild, DRUPE_COUNT_OF(wild));
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

/* Whether all its undefined symbols are known. */
static bool knows_symbols(const drupe_host_code *code, const ElfW(Shdr) * table, const ElfW(Shdr) * names)
{
    const ElfW(Sym) *symbols = part(code, table->sh_offset, table->sh_size);
    const char *text = part(code, names->sh_offset & ~UINT64_C(7), names->sh_size + (names->sh_offset & 7));
    if (!symbols || !text || !names->sh_size) return false;
    text += names->sh_offset & 7;
    if (text[names->sh_size - 1]) return false;
    for (size_t i = 1; i < table->sh_size / sizeof *symbols; i++) {
        if (symbols[i].st_shndx != SHN_UNDEF) continue;
        if (symbols[i].st_name >= names->sh_size || is_unknown(code, &symbols[i], text + symbols[i].st_name))
            return false;
    }
    return true;
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
        if (knows_symbols(code, &sections[i], &sections[sections[i].sh_link]))
            code->recovery.way = DRUPE_WAY_ON_INSIDE;
        return;
    }
}
