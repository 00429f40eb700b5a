"""What passes: a shortage after which a driver is tried again, queues that come and go."""


def test_opencl_without_a_free_descriptor(fresh):
    """Loaders and drivers keep for good what they could not open, so they are not asked meanwhile."""
    result = fresh("""
        import os, resource
        import drupe
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = [os.open("/dev/null", os.O_RDONLY)]
        for free in (0, 5):
            limit = max(map(int, os.listdir("/proc/self/fd"))) + 1 + free
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            try:
                drupe.Device("opencl:cpu")
            except drupe.DeviceError as error:
                print(free, "not now", free == 0 or "descriptors" in str(error) and "tried again" in str(error))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        print([device.filter_string for device in drupe.devices("opencl:cpu")][:1])
    """)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    if lines[-1] == "[]":
        import drupe
        assert not drupe.devices("opencl:cpu"), lines
    else:
        assert lines == ["0 not now True", "5 not now True", "['opencl:cpu:0']"]


def test_unordered_queues_come_and_go(fresh):
    """A driver may hang when a queue goes whose last command is just ending: this one did within seconds."""
    result = fresh("""
        import os, sys, threading
        import drupe
        import drupe.array as da
        if not drupe.devices("opencl:cpu"):
            print("gone")
            sys.exit()
        device = drupe.Device("opencl:cpu")
        program = drupe.Program('''
            kernel void f(global int *x)
            {
                int sum = 0;
                for (int i = 0; i < 300; i++) sum += x[i % 64] ^ i;
                x[get_global_id(0)] = sum;
            }''', device)
        x = da.zeros(4096, dtype="int32", device=device)

        def work():
            for _ in range(2000 if os.environ.get("DRUPE_TEST_DRIVER") == "intel" else 50):
                queue = drupe.Queue(device, in_order=False)
                events = [program.f(x, global_size=4096, queue=queue) for _ in range(8)]
                events[3].wait()
                queue.barrier().wait()
                del queue, events

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("gone")
    """)
    assert result.stdout == "gone\n", result.stderr
