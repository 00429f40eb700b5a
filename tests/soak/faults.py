"""The soak of faults: launches that fault, on `host` with few and with many workers; threads and memory stay.

The same process, with a smaller count, is a test of the package."""
import os
import subprocess
import sys
import textwrap

TEXT = textwrap.dedent('''
    import os, resource, sys
    import drupe
    import drupe.array as da

    drupe.contain_faults()
    count = int(sys.argv[1])
    program = drupe.Program(r"""
    #include <stdio.h>
    #include <string.h>
    static int deeper(volatile char *above)
    {
        volatile char room[4096];
        room[0] = *above;
        return room[0] == 77 ? 0 : deeper(room) + room[0];
    }
    kernel void good(int *x) { x[get_global_id(0)] = 7; }
    kernel void wild(int *x) { *(volatile int *)(8 + 4 * get_global_id(0)) = 1; x[0] = 1; }
    kernel void copy(int *x) { memcpy((char *)8 + get_global_id(0), x, 100 + get_global_id(0) % 7); }
    kernel void illegal(int *x) { __builtin_trap(); }
    kernel void deep(int *x) { volatile char top = 1; x[0] = deeper(&top); }
    """, "host", language="c")
    # A library of its own: what one kernel calls counts for all of its program.
    printing = drupe.Program(r"""
    #include <stdio.h>
    kernel void print(int *x) { char text[99]; snprintf(text, 99, "%s", (char *)8); x[0] = text[0]; }
    kernel void behind(int *x) { char text[9]; snprintf(text, 9, "%d", x[0]); *(volatile char *)8 = text[0]; }
    """, "host", language="c")
    kernels = [program.wild, program.copy, program.illegal, printing.print, printing.behind]
    x = da.zeros(1000, dtype="int32", device="host")

    def state():
        with open("/proc/self/statm") as file:
            return len(os.listdir("/proc/self/task")), int(file.read().split()[1]) * resource.getpagesize() >> 20

    def launch(kernel):
        try:
            kernel(x, global_size=1000).wait()
        except drupe.DeviceLostError as error:
            assert "works on" in str(error) and f"'{kernel.name}'" in str(error), error
            x.accept_contents()
        else:
            sys.exit(f"{kernel.name} did not fault")

    for kernel in kernels + [program.deep]:
        launch(kernel)
    before = state()
    for i in range(count):
        launch(program.deep if i % 100 == 99 else kernels[i % len(kernels)])
    program.good(x, global_size=1000).wait()
    assert x.asnumpy().tolist() == [7] * 1000
    print(*before, *state())
''')


def problems_of(count, threads):
    """What is wrong after so many faults with so many workers, as lines."""
    done = subprocess.run([sys.executable, "-c", TEXT, str(count)], capture_output=True, text=True, check=False,
                          env={**os.environ, "DRUPE_HOST_THREADS": str(threads)})
    if done.returncode:
        return ["%d workers: exit %d: %s" % (threads, done.returncode, (done.stdout + done.stderr)[-800:])]
    threads_before, before, threads_after, after = map(int, done.stdout.split())
    problems = []
    # Workers that were not needed before may have begun.
    if threads_after > max(threads_before, threads + 4):
        problems.append("%d workers: %d threads became %d" % (threads, threads_before, threads_after))
    if after > before + 64 + threads:
        problems.append("%d workers: %d MiB became %d" % (threads, before, after))
    return problems


def run(count, seed):
    del seed
    return [problem for threads in (1, 2, 16, 100) for problem in problems_of(count, threads)]
