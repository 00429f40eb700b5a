/* Threads of the server: they block every signal that is not raised by a fault, and have a stack of their own
 * for those, without which a crash by a full stack cannot be reported. */
#include "base/base.h"
#include "jkernel/executor.h"
#include "jkernel/server/tools/tools_room.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SIGNAL_STACK (256u << 10)

static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;
static bool stack_key_made;

static void stack_release(void *memory)
{
    stack_t now, none = {.ss_flags = SS_DISABLE};
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == (char *)memory + drupe_page_size())
        sigaltstack(&none, NULL);
    munmap(memory, drupe_page_size() + SIGNAL_STACK);
}

static void stack_key_make(void)
{
    stack_key_made = pthread_key_create(&stack_key, stack_release) == 0;
}

void jk_thread_signal_stack(void)
{
    if (JK_SANITIZED) return;
    pthread_once(&stack_once, stack_key_make);
    if (!stack_key_made || pthread_getspecific(stack_key)) return;
    size_t guard = drupe_page_size(); /* before the stack: it faults */
    char *memory = mmap(NULL, guard + SIGNAL_STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    mprotect(memory, guard, PROT_NONE);
    stack_t stack = {.ss_sp = memory + guard, .ss_size = SIGNAL_STACK};
    if (pthread_setspecific(stack_key, memory) != 0 || sigaltstack(&stack, NULL) != 0) {
        pthread_setspecific(stack_key, NULL);
        munmap(memory, guard + SIGNAL_STACK);
    }
}

typedef struct thread_start {
    void *(*body)(void *);
    void *argument;
} thread_start;

static void *thread_run(void *argument)
{
    thread_start start = *(thread_start *)argument;
    free(argument);
    jk_thread_signal_stack();
    return start.body(start.argument);
}

int jk_thread_start(pthread_t *thread, void *(*body)(void *), void *argument)
{
    thread_start *start = malloc(sizeof *start);
    if (!start) return -1;
    *start = (thread_start){body, argument};
    if (drupe_thread_start(thread, thread_run, start, NULL) == DRUPE_OK) return 0;
    free(start);
    return -1;
}
