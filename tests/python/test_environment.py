"""DRUPE_DEVICES and ONEAPI_DEVICE_SELECTOR, each in a process of its own."""
import pytest

import drupe

SHOW = """
    import drupe
    try:
        found = drupe.devices()
        print(*(f"{one.filter_string}/{one.max_compute_units}/{one.parent_device is not None}" for one in found))
        print(drupe.Device().filter_string)
    except drupe.DeviceError as error:
        print(type(error).__name__, error)
"""
UNITS = drupe.Device("host").max_compute_units
OPENCL = [one for one in drupe.devices("opencl")]
WHOLE = f"host:cpu:0/{UNITS}/False"
PARTS = " ".join(f"host:cpu:{index}/1/True" for index in range(UNITS))
ALL = " ".join([WHOLE, *(f"{one.filter_string}/{one.max_compute_units}/False" for one in OPENCL)])
OTHERS = ALL[len(WHOLE):].strip()


def show(fresh, **variables):
    result = fresh(SHOW, **{"DRUPE_DEVICES": "", "ONEAPI_DEVICE_SELECTOR": "", **variables})
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return result.stdout.splitlines()


@pytest.mark.parametrize("text, expected", [
    ("", ALL), (" ", ALL), ("*:*", ALL), ("host:*", WHOLE), ("HOST:CPU", WHOLE), (" host : 0 ", WHOLE),
    ("host:0;", WHOLE), ("host:gpu,cpu", WHOLE), ("!opencl:*", WHOLE), ("*:*;!opencl:*", WHOLE), ("opencl:*", OTHERS),
    ("!host:cpu", OTHERS), ("*:*;!host:0", OTHERS), ("cuda:*;level_zero:gpu;host:*", WHOLE),
    ("native_cpu:*;host:*", WHOLE),
    ("host:*;!*:gpu", WHOLE), ("host:0,0;host:0", WHOLE), ("host:1", ""), ("host:fpga", ""), ("host:0.99", ""),
    ("cuda:*", ""), ("!*:*", "")])
def test_what_is_left(fresh, text, expected):
    first, *rest = show(fresh, DRUPE_DEVICES=text)
    assert first == expected
    if expected:
        names = [one.split("/")[0] for one in expected.split()]
        assert rest == ([name for name in names if ":gpu" in name] or names)[:1]
    else:
        assert "DeviceNotFoundError" in rest[0] and f"DRUPE_DEVICES={text} limits" in rest[0]


@pytest.mark.skipif(UNITS < 2, reason="one processor only")
@pytest.mark.parametrize("text, expected", [
    ("host:0.*", PARTS), ("host:*.*", PARTS), ("host:0.0", "host:cpu:0/1/True"), ("host:0.1,0.1", "host:cpu:0/1/True"),
    ("host:*,0.0", f"{WHOLE} host:cpu:1/1/True"), ("host:0.0,0.1;!host:*", ""), ("host:0.*.*", "")])
def test_parts(fresh, text, expected):
    assert show(fresh, DRUPE_DEVICES=text)[0] == expected


@pytest.mark.skipif(UNITS < 2, reason="one processor only")
@pytest.mark.parametrize("name", ["host", *(["opencl"] if OPENCL and OPENCL[0].partition_max_sub_devices else [])])
def test_parts_are_devices(fresh, name):
    """They are numbered as devices, keep their queue, and nothing is left when the process ends."""
    result = fresh("""
        import drupe, drupe.array as da
        first, second = drupe.devices()
        assert first.max_compute_units == 1 and first.parent_device == second.parent_device
        assert "hidden by DRUPE_DEVICES" in first.parent_device.filter_string
        assert drupe.Device(first.filter_string) == first and first.queue == drupe.queue(first) != second.queue
        assert first.context.platform == second.context.platform and first.get_filter_string() == first.filter_string
        assert [one.get_device_id() for one in (first, second)] == [0, 1]
        x = da.ones(1000, device=second)
        assert float((x + x).sum()) == 2000 and x.device == second
        print("good")
    """, DRUPE_DEVICES=name + ":0.0,0.1")
    assert result.stdout.strip() == "good", result.stderr


@pytest.mark.parametrize("text, part, why", [
    ("frog:*", "'frog'", "not a backend"), ("host", "'host'", "no ':'"), ("host:frog", "'frog'", "not a device"),
    ("host:0;opencl:-1", "'-1'", "not a device"), ("host:", "'host:'", "place without a device"),
    ("host:0,,1", "'host:0,,1'", "place without a device"), ("!host:0.1", "'0.1'", "takes away parts"),
    ("!host:*;opencl:*", "'opencl:*'", "come last"), ("host:cpu.0", "'cpu.0'", "not a device"),
    ("host:0.", "'0.'", "not a device"), ("host:0.x", "'0.x'", "not a device"), (":cpu", "''", "not a backend"),
    ("host:0:1", "'0:1'", "not a device"), ("*:12345678", "'12345678'", "not a device"), ("!", "'!'", "no ':'"),
    ("host:" + "x" * 3000, "'xxxx", "not a device")])
@pytest.mark.parametrize("name", ["DRUPE_DEVICES", "ONEAPI_DEVICE_SELECTOR"])
def test_mistakes_name_the_part(fresh, name, text, part, why):
    (line,) = show(fresh, **{name: text})
    assert line.startswith(f"InvalidArgumentError {name}={text[:40]}"), line
    if len(text) < 100:
        assert part in line and why in line and "backend:devices" in line


def test_the_other_variable(fresh):
    """ONEAPI_DEVICE_SELECTOR knows nothing of `host`, which stays; DRUPE_DEVICES wins over it."""
    assert show(fresh, ONEAPI_DEVICE_SELECTOR="level_zero:gpu")[0] == WHOLE
    assert show(fresh, ONEAPI_DEVICE_SELECTOR="opencl:*")[0] == ALL
    left = [WHOLE, *(one for one in OTHERS.split() if "opencl:cpu" not in one)]
    assert show(fresh, ONEAPI_DEVICE_SELECTOR="!*:cpu")[0] == " ".join(left)
    assert show(fresh, ONEAPI_DEVICE_SELECTOR="frog", DRUPE_DEVICES="host:*")[0] == WHOLE


def test_no_device_at_all_tells_why(fresh):
    result = fresh("import drupe; drupe.Device()", DRUPE_DEVICES="host:7")
    assert "DeviceNotFoundError: There is no device. DRUPE_DEVICES=host:7 limits" in result.stderr


def test_no_driver_is_opened_that_is_not_wanted(fresh):
    result = fresh("import drupe; drupe.devices(); print('libOpenCL' in open('/proc/self/maps').read())",
                   DRUPE_DEVICES="host:*")
    assert result.stdout.strip() == "False"


# --- values that cannot be understood -------------------------------------------------------------------------

@pytest.mark.parametrize("name, value, allowed", [
    ("DRUPE_MEMORY_LIMIT", "hots=1M", "'hots' names no devices"), ("DRUPE_MEMORY_LIMIT", "=4G", "names no devices"),
    ("DRUPE_MEMORY_LIMIT", "op=1M", "'op' names no devices"), ("DRUPE_MEMORY_KEEP", "host:cpu:0.1=1M", "names no dev"),
    ("DRUPE_MEMORY_KEEP", "lots", "no amount of memory"), ("DRUPE_MEMORY_LIMIT", "0=1M", "names no devices"),
    ("DRUPE_MEMORY_WIPE", "1", "alloc,free"), ("DRUPE_MEMORY_WIPE", "alloc,fre", "alloc,free"),
    ("DRUPE_HOST_THREADS", "abc", "from 1 to 1024"), ("DRUPE_HOST_THREADS", "0", "from 1 to 1024"),
    ("DRUPE_HOST_THREADS", "2.5", "from 1 to 1024"), ("DRUPE_HOST_VARIANT", "sse9", "baseline"),
    ("DRUPE_HOST_SHUFFLE", "x", "a number"), ("DRUPE_BLAS", "mkl", "none"), ("DRUPE_PINNED", "no", '"0" or "1"'),
    ("DRUPE_PROFILE", "off", '"0" or "1"'), ("DRUPE_CACHE", "none", "off"),
    ("DRUPE_CACHE_SIZE", "lots", "256M"), ("DRUPE_CACHE_SIZE", "-5", "256M"), ("DRUPE_FORM", "tpu", "cpu"),
    ("DRUPE_LAYERS", "chek", '"check"'), ("DRUPE_FUSE", "no", "steps"),
    ("DRUPE_FUSE_ABOVE", "1k", "number of elements"), ("DRUPE_FUSE_MOST", "few", "number of operations")])
def test_what_cannot_be_understood_is_told(fresh, name, value, allowed):
    """A setting that is ignored looks like one that is obeyed."""
    for text in ("drupe.devices()", "drupe.Device('host')", "drupe.array.ones(3, device='host')"):
        result = fresh("import drupe, drupe.array\ntry:\n    " + text + """
except drupe.InvalidArgumentError as error:
    print(error)""", **{name: value})
        assert name in result.stdout and allowed in result.stdout, result.stdout + result.stderr
        assert result.stderr == ""


@pytest.mark.parametrize("name, value", [
    ("DRUPE_MEMORY_LIMIT", "host=1G,gpu=50%, opencl:cpu:0=2G"), ("DRUPE_MEMORY_LIMIT", "cuda=1G"),
    ("DRUPE_MEMORY_WIPE", "0"), ("DRUPE_MEMORY_WIPE", " free , alloc "), ("DRUPE_MEMORY_WIPE", ""),
    ("DRUPE_HOST_THREADS", "1"), ("DRUPE_HOST_THREADS", ""), ("DRUPE_CACHE", "OFF"), ("DRUPE_CACHE_SIZE", "1g"),
    ("DRUPE_PROFILE", "0"), ("DRUPE_BLAS", "none"), ("DRUPE_LAYERS", "")])
def test_what_can_be_understood_is_taken(fresh, name, value):
    result = fresh("import drupe.array as da; print(da.ones(3, device='host').tolist())", **{name: value})
    assert result.stdout == "[1.0, 1.0, 1.0]\n" and result.stderr == ""


@pytest.mark.parametrize("limit, refused", [
    ("cpu=1M", True), ("host=1M", True), ("host:cpu:0=1M", True), ("host:cpu:1=1M", False), ("gpu=1M", False),
    ("1M,host=1G", False), ("host=1G,1M", True)])
def test_a_limit_holds_for_the_devices_that_it_names(fresh, limit, refused):
    result = fresh("""
        import drupe, drupe.array as da
        try:
            da.zeros(1 << 20, device="host")
        except drupe.DeviceMemoryError:
            print("refused")
    """, DRUPE_MEMORY_LIMIT=limit)
    assert result.stdout == "refused\n" * refused and result.stderr == ""


def test_the_doctor_tells_them(fresh):
    text = "from drupe import doctor; doctor.main([])"
    result = fresh(text, DRUPE_HOST_THREADS="many", DRUPE_SUBSHELLS="yes", DRUPE_LOG="/no/such/folder/log")
    for part in ("DRUPE_HOST_THREADS=many cannot", "from 1 to 1024", "DRUPE_SUBSHELLS=yes cannot", "write 0 or 1",
                 "DRUPE_LOG=/no/such/folder/log cannot be written"):
        assert part in result.stdout, result.stdout + result.stderr
