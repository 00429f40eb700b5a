/* Work-groups of kernels in C: their work-items take turns on one thread, each on a stack of its own.
 *
 * A barrier switches to the next work-item of the group that has not come there. One that ends without having
 * met a barrier leaves its stack to the next, so a kernel that meets none costs little more than a loop.
 * Stacks belong to the thread, which keeps them; below each lies a page that faults. Each such page costs the
 * process two mappings, of which systems allow some 65,000. So their number is limited, and stacks without
 * one have a mark at their end, which is looked at whenever a work-item stops; a page below all of them
 * faults in any case. A fault leaves the group where it is: the thread goes on elsewhere, and the next group
 * begins anew. */
#include "backends/host/groups.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define STACK_BYTES ((size_t)64 << 10)
#define MOST_GUARDS ((size_t)8 << 10) /* pages that fault, of all threads */
#define MARK        UINT64_C(0x9e3779b97f4a7c15)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ON_ANY_STACK __attribute__((no_sanitize("address", "thread")))
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ON_ANY_STACK __attribute__((no_sanitize("address", "thread")))
#endif
#endif
#ifndef ON_ANY_STACK
#define ON_ANY_STACK
#endif

/* The work-items of the group that a thread runs. */
typedef struct group {
    char *stacks; /* mapped: `room` of them, each with its page, and one more page below */
    size_t room;
    bool guarded;  /* by pages that fault */
    bool full;     /* a work-item has gone over the mark */
    void **places; /* of those that wait at a barrier: their stack pointers, by number */
    bool *over;
    void *home; /* the stack pointer of the loop over them */
    size_t now; /* whose turn it is */
    drupe_host_item_fn item;
    void *user;
} group;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local group *here;
static _Atomic(size_t) guards;

/* --- Switching -------------------------------------------------------------------------------------------
 */

/* Keep the calling function's registers on its stack, put the stack pointer into *from, and go on where `to`
 * was put. */
void drupe_host_switch(void **from, void *to);

#if defined(__x86_64__)
#define STACK_SAVED 7 /* six registers and where to return to */
__asm__(".text\n.globl drupe_host_switch\n.hidden drupe_host_switch\n.type drupe_host_switch, @function\n"
        "drupe_host_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
        ".size drupe_host_switch, . - drupe_host_switch\n");
#elif defined(__aarch64__)
#define STACK_SAVED 20
__asm__(
    ".text\n.globl drupe_host_switch\n.hidden drupe_host_switch\n.type drupe_host_switch, %function\n"
    "drupe_host_switch:\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, "
    "#112]\n"
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, "
    "#112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  ret\n"
    ".size drupe_host_switch, . - drupe_host_switch\n");
#endif

bool drupe_host_groups_possible(void)
{
#ifdef STACK_SAVED
    return true;
#else
    return false;
#endif
}

/* The first function of a work-item's stack. It returns to nobody. */
ON_ANY_STACK static void begin_item(void)
{
    for (;;) {
        group *all = here;
        void *place;
        all->item(all->user, all->now);
        all->over[all->now] = true;
        drupe_host_switch(&place, all->home);
    }
}

ON_ANY_STACK void drupe_host_group_barrier(void)
{
    group *all = here;
    drupe_host_switch(&all->places[all->now], all->home);
}

static size_t stack_step(void)
{
    return STACK_BYTES + drupe_page_size();
}

/* A stack on which begin_item() is about to begin. */
static void *fresh_stack(group *all, size_t i)
{
#ifdef STACK_SAVED
    void **top = (void **)(all->stacks + (i + 1) * stack_step());
    void (*first)(void) = begin_item;
#if defined(__x86_64__)
    top -= STACK_SAVED + 1; /* as a call leaves it: 8 bytes below a multiple of 16 */
    memset(top, 0, STACK_SAVED * sizeof *top);
    memcpy(&top[6], &first, sizeof first);
#else
    top -= STACK_SAVED;
    memset(top, 0, STACK_SAVED * sizeof *top);
    memcpy(&top[11], &first, sizeof first);
#endif
    return top;
#else
    (void)all, (void)i, (void)begin_item;
    return NULL;
#endif
}

/* --- Threads ---------------------------------------------------------------------------------------------
 */

static void unmap(group *all)
{
    if (all->stacks) munmap(all->stacks - drupe_page_size(), all->room * stack_step() + drupe_page_size());
    if (all->guarded) atomic_fetch_sub(&guards, all->room);
    all->guarded = false;
    free(all->places);
    free(all->over);
    all->stacks = NULL;
    all->places = NULL;
    all->over = NULL;
    all->room = 0;
}

static void forget(void *user)
{
    unmap(user);
    free(user);
}

static void make_key(void)
{
    (void)pthread_key_create(&key, forget);
}

/* Pages that fault, or marks where there are too many such pages. The system may refuse some of them. */
static void guard(group *all)
{
    const size_t count = all->room, step = stack_step(), page = drupe_page_size();
    bool good = atomic_fetch_add(&guards, count) + count <= MOST_GUARDS;
    for (size_t i = 0; good && i < count; i++) good = mprotect(all->stacks + i * step, page, PROT_NONE) == 0;
    all->guarded = good;
    if (good) return;
    atomic_fetch_sub(&guards, count);
    (void)mprotect(all->stacks, count * step, PROT_READ | PROT_WRITE);
}

static uint64_t *mark_of(const group *all, size_t stack)
{
    return (uint64_t *)(all->stacks + stack * stack_step());
}

/* Room for so many work-items. False without memory. */
static bool make_room(group *all, size_t count)
{
    if (all->room >= count) return true;
    unmap(all);
    const size_t page = drupe_page_size();
    char *memory = mmap(NULL, count * stack_step() + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return false;
    (void)mprotect(memory, page, PROT_NONE);
    all->stacks = memory + page;
    all->room = count;
    all->places = calloc(count, sizeof *all->places);
    all->over = calloc(count, sizeof *all->over);
    const bool good = all->places && all->over;
    if (good)
        guard(all);
    else
        unmap(all);
    return good;
}

static group *group_of_thread(size_t count)
{
    pthread_once(&once, make_key);
    group *all = here;
    if (!all) {
        all = calloc(1, sizeof *all);
        if (!all) return NULL;
        here = all;
        (void)pthread_setspecific(key, all);
    }
    return make_room(all, count) ? all : NULL;
}

/* --- Groups ----------------------------------------------------------------------------------------------
 */

static size_t stack_of(const group *all, const void *place)
{
    return (size_t)((const char *)place - all->stacks) / stack_step();
}

/* Let a work-item go on, on this stack. One that has used up a stack without a page that faults has written
 * over that of another one: nothing that the group does is right then. */
static void turn_on_mark(group *all, size_t i, size_t stack, void *place)
{
    all->now = i;
    drupe_host_switch(&all->home, place);
    const bool inside = all->over[i] || stack_of(all, all->places[i]) == stack;
    if (inside && *mark_of(all, stack) == MARK) return;
    all->full = true;
    __builtin_trap();
}

/* Let a work-item that has come to a barrier go on. */
static inline void turn_again(group *all, size_t i)
{
    void *place = all->places[i];
    if (!all->guarded) {
        turn_on_mark(all, i, stack_of(all, place), place);
        return;
    }
    all->now = i;
    drupe_host_switch(&all->home, place);
}

/* Let a work-item begin. */
static inline void turn_first(group *all, size_t i, size_t stack)
{
    void *place = fresh_stack(all, stack);
    if (!all->guarded) {
        *mark_of(all, stack) = MARK;
        turn_on_mark(all, i, stack, place);
        return;
    }
    all->now = i;
    drupe_host_switch(&all->home, place);
}

bool drupe_host_group_run(drupe_host_item_fn item, void *user, size_t count)
{
    group *all = group_of_thread(count);
    if (!all) return false;
    all->item = item;
    all->user = user;
    all->full = false;
    size_t stack = 0, left = count;
    for (size_t i = 0; i < count; i++) {
        all->over[i] = false;
        turn_first(all, i, stack);
        if (all->over[i])
            left--; /* what it left there is over */
        else
            stack++;
    }
    while (left) {
        for (size_t i = 0; i < count; i++) {
            if (all->over[i]) continue;
            turn_again(all, i);
            if (all->over[i]) left--;
        }
    }
    return true;
}

bool drupe_host_group_full(uintptr_t address)
{
    const group *all = here;
    if (!all || !all->stacks || all->full) return all && all->full;
    const uintptr_t page = drupe_page_size(), below = (uintptr_t)all->stacks - page, at = address - below;
    return at < page || (at - page < all->room * stack_step() && (at - page) % stack_step() < page);
}
