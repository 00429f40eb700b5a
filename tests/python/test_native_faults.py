"""Faults in functions of shared libraries: what they fail, what is told of them, and what goes on."""
import pytest
from native_build import CC

pytestmark = pytest.mark.skipif(not CC, reason="there is no C compiler")


def test_work_behind_a_failure_does_not_run(fresh, native_functions):
    done = fresh("""
        import drupe, drupe.array as da
        from drupe import native
        drupe.contain_faults()
        library = native.load(%r, "host")
        library.declare("axpy", "void(long, double, const double *, double *)")
        x, queue = da.ones(1, dtype="float64", device="host"), drupe.Queue("host")
        failed = library.fault(None, queue=queue)
        behind = library.axpy(1, 1.0, x, x, queue=queue)
        for event, kind in ((failed, drupe.DeviceLostError), (behind, drupe.DependencyError)):
            try:
                event.wait()
            except kind as error:
                assert "fault" in str(error)
            else:
                raise SystemExit("no failure")
        x.accept_contents()
        assert float(x[0]) == 1
    """ % str(native_functions))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name, arguments, why", [
    ("fault", (None,), "Segmentation fault|address|memory"), ("divide", (1, 0, 0), "division|Floating|arithmetic|zero"),
    ("overflow_stack", (0,), "stack|address|memory")])
def test_fault_is_contained_and_names_the_function(fresh, native_functions, name, arguments, why):
    done = fresh("""
        import re, drupe
        from drupe import native
        drupe.contain_faults()
        for device in ["host"] + [d.filter_string for d in drupe.devices("opencl:cpu")][:1]:
            library = native.load(%r, device)
            try:
                library.%s(*%r).wait()
            except drupe.DeviceLostError as error:
                assert %r in str(error), error
                assert re.search(%r, str(error), re.I), error
            else:
                raise SystemExit("no fault")
            print(device, "failed")
        library = native.load(%r, "host")
        library.nothing().wait()
        print("works on")
    """ % (str(native_functions), name, arguments, name, why, str(native_functions)))
    assert done.returncode == 0, done.stderr
    assert "host failed" in done.stdout and "works on" in done.stdout


def test_fault_in_a_row_of_calls_is_that_of_its_line(fresh, native_functions):
    done = fresh("""
        import drupe, drupe.array as da
        from drupe import native
        drupe.contain_faults()
        library = native.load(%r, "host")
        axpy = library.declare("axpy", "void(long, double, const double *, double *)")
        x, y = da.ones(4, dtype="float64", device="host"), da.zeros(4, dtype="float64", device="host")
        for _ in range(20):
            axpy(4, 1.0, x, y, event=False)
        y.queue.wait()
        assert y.tolist() == [20] * 4
        axpy(1 << 40, 1.0, x, y, event=False)
        axpy(4, 1.0, x, y, event=False)
        try:
            y.queue.wait()
        except drupe.DeviceLostError as error:
            print(error.line)
            assert "axpy" in str(error)
        else:
            raise SystemExit("no fault")
        try:
            y.tolist()
        except (drupe.DeviceLostError, drupe.DependencyError) as error:
            assert "axpy" in str(error)
        else:
            raise SystemExit("no mark")
        y = da.zeros(4, dtype="float64", device="host")
        axpy(4, 1.0, x, y)
        assert y.tolist() == [1] * 4
        library.unload()  # a thread is parked in it
    """ % str(native_functions))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["12"]  # the line
