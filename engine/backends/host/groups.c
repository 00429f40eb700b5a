/* Work-groups of kernels in C: their work-items take turns on one thread, each on a stack of its own.
 *
 * A barrier switches to the next work-item of the group that has not come there. One that ends without having
 * met a barrier leaves its stack to the next, so a kernel that meets none costs little more than a loop.
 * Stacks belong to the thread, which keeps them; below each lies a page that faults. A fault leaves the group
 * where it is: the thread goes on elsewhere, and the next group begins anew. */
#include "backends/host/groups.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define STACK_BYTES ((size_t)64 << 10)

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
    char *stacks; /* mapped: `room` of them, each with its page */
    size_t room;
    void **places; /* of those that wait at a barrier: their stack pointers, by number */
    bool *over;
    void *home; /* the stack pointer of the loop over them */
    size_t now; /* whose turn it is */
    bool waits; /* it came to a barrier */
    drupe_host_item_fn item;
    void *user;
} group;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local group *here;

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
        all->waits = false;
        drupe_host_switch(&place, all->home);
    }
}

ON_ANY_STACK void drupe_host_group_barrier(void)
{
    group *all = here;
    all->waits = true;
    drupe_host_switch(&all->places[all->now], all->home);
}

/* A stack on which begin_item() is about to begin. */
static void *fresh_stack(group *all, size_t i)
{
#ifdef STACK_SAVED
    const size_t step = STACK_BYTES + drupe_page_size();
    void **top = (void **)(all->stacks + (i + 1) * step);
    void (*first)(void) = begin_item;
    top -= STACK_SAVED + 3 - STACK_SAVED % 2; /* begin_item() finds it as a call leaves it */
#if defined(__x86_64__)
    memset(top, 0, STACK_SAVED * sizeof *top);
    memcpy(&top[6], &first, sizeof first);
#else
    top -= (uintptr_t)top / sizeof *top % 2;
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
    if (all->stacks) munmap(all->stacks, all->room * (STACK_BYTES + drupe_page_size()));
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

/* Room for so many work-items. False without memory. */
static bool make_room(group *all, size_t count)
{
    if (all->room >= count) return true;
    unmap(all);
    const size_t page = drupe_page_size(), step = STACK_BYTES + page;
    void *stacks = mmap(NULL, count * step, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) return false;
    all->stacks = stacks;
    all->room = count;
    all->places = calloc(count, sizeof *all->places);
    all->over = calloc(count, sizeof *all->over);
    bool good = all->places && all->over;
    for (size_t i = 0; good && i < count; i++) good = mprotect(all->stacks + i * step, page, PROT_NONE) == 0;
    if (!good) unmap(all);
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

bool drupe_host_group_run(drupe_host_item_fn item, void *user, size_t count)
{
    group *all = group_of_thread(count);
    if (!all) return false;
    all->item = item;
    all->user = user;
    size_t stack = 0, left = count;
    void *place = fresh_stack(all, 0);
    for (size_t i = 0; i < count; i++) {
        all->now = i;
        all->over[i] = false;
        drupe_host_switch(&all->home, place);
        if (all->over[i]) {
            left--;
            place = fresh_stack(all, stack); /* what it left there is over */
        } else if (i + 1 < count) {
            place = fresh_stack(all, ++stack);
        }
    }
    while (left) {
        for (size_t i = 0; i < count; i++) {
            if (all->over[i]) continue;
            all->now = i;
            drupe_host_switch(&all->home, all->places[i]);
            if (all->over[i]) left--;
        }
    }
    return true;
}
