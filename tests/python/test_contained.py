"""Faults of device work cost the work, however many there are."""
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "soak"))
import faults  # noqa: E402


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")
@pytest.mark.parametrize("threads", [1, 2, 16, 100])
def test_as_often_as_you_like(threads):
    """As a soak it is 10,000 launches: ./dev soak faults."""
    assert faults.problems_of(300, threads) == []


@pytest.mark.parametrize("elements", [16, 1000, 30000, 1000000])
@pytest.mark.parametrize("device", ["host", "opencl:cpu"])
def test_a_million_work_items_past_the_end(fresh, device, elements):
    """They meet memory of the device and pages that fault, not what the C library keeps beside its blocks."""
    if device == "host" and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler")
    result = fresh(f"""
        import sys
        import drupe, drupe.array as da
        device, elements = {device!r}, {elements}
        if not drupe.devices(device):
            print("skip")
            sys.exit()
        drupe.contain_faults()
        text = "kernel void past(%sfloat *x) {{ x[get_global_id(0)] = 1; }}"
        if device == "host":
            program = drupe.Program(text % "", device, language="c")
        else:
            program = drupe.Program(text % "global ", device)
        arrays = [da.ones(elements, dtype="float32", device=device) for _ in range(8)]
        program.past(arrays[0], global_size=elements).wait()
        kept = []
        try:
            program.past(arrays[3], global_size=elements + 1000000).wait()
        except drupe.DeviceLostError as error:
            print("SIGSEGV" in str(error))
        for i in range(1000):
            kept.append(bytearray(100 * i))
        del kept, arrays
        print(float(da.sum(da.ones(10, device="host"))))
    """)
    if result.stdout == "skip\n":
        pytest.skip(f"there is no {device}")
    assert result.returncode == 0 and result.stdout == "True\n10.0\n", result.stdout + result.stderr


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")
@pytest.mark.parametrize("threads", [2, 16])
def test_faults_of_all_kinds_at_once(fresh, threads):
    """From several threads and queues, in order and not, with host tasks between; each is told, others work on."""
    result = fresh("""
        import random, threading
        import drupe, drupe.array as da
        drupe.contain_faults()
        program = drupe.Program(r'''
            static int deeper(volatile char *above)
            {
                volatile char room[4096];
                room[0] = *above;
                return room[0] == 77 ? 0 : deeper(room) + room[0];
            }
            kernel void null(int *x) { *(volatile int *)0 = 1; }
            kernel void wild(int *x) { *(volatile int *)(4096 * (get_global_id(0) % 100)) = 1; }
            kernel void outside(int *x) { *(volatile int *)0x4141414141414141ul = 1; }
            kernel void past(int *x) { for (long i = 0; i < 8000000; i++) ((volatile int *)x)[i + 1000000] = 1; }
            kernel void illegal(int *x) { __builtin_trap(); }
            kernel void deep(int *x) { volatile char top = 1; x[0] = deeper(&top); }
            kernel void jump(int *x) { ((void (*)(void))0x770)(); }
            kernel void good(int *x) { x[get_global_id(0)] = 7; }
        ''', "host", language="c")
        names = ["null", "wild", "outside", "past", "illegal", "deep", "jump"]
        wrong = []

        def work(number):
            choose = random.Random(number)
            queue, quiet = drupe.Queue("host", in_order=number % 2 == 0), drupe.Queue("host")
            x, y = (da.zeros(4096, dtype="int32", device="host") for _ in range(2))
            for round in range(30):
                name = choose.choice(names)
                try:
                    program[name](x, global_size=choose.choice([1, 7, 1000]), queue=queue).wait()
                    wrong.append(name + " ran")
                except drupe.DeviceLostError as error:
                    if f"'{name}'" not in str(error):
                        wrong.append(str(error))
                quiet.host_task(lambda: None).wait()
                program.good(y, global_size=4096, queue=quiet).wait()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(wrong)
    """, DRUPE_HOST_THREADS=str(threads))
    assert result.returncode == 0 and result.stdout == "[]\n", result.stdout + result.stderr
