"""The benchmarks run and count right; how fast anything is does not matter here."""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import numpy
import pytest

BENCH = pathlib.Path(__file__).parent.parent / "bench"


def run(script, *arguments):
    done = subprocess.run([sys.executable, str(BENCH / script), *arguments], capture_output=True, text=True,
                          timeout=250)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kernel(tmp_path):
    text = run("kernel.py", "--only", "drupe", "--rounds", "1", "--turns", "10", "--json", str(tmp_path / "values"))
    values = json.loads((tmp_path / "values").read_text())
    drupe = values["drupe"]
    for figure in ("20,000 prints, lost", "flushed prints, lost", "display_data, lost"):
        assert set(drupe[figure]) == {0}
    assert len(drupe["pass -> idle"]) == len(drupe["kernel_info on control"]) == 10
    assert len(drupe["control, GIL held 2 s"]) > 1  # one: answered when the call was over
    assert all(idle >= reply for reply, idle in zip(drupe["pass -> reply"], drupe["pass -> idle"]))
    assert drupe["threads"][0] >= 4 and drupe["idle memory, private"][0] <= drupe["idle memory, PSS"][0]
    assert values["C echo"] and values["IPython alone"] and "goal" in text


def test_many():
    text = run("many.py", "--only", "drupe", "--kernels", "3", "--seconds", "1", "--rate", "5")
    row = next(line for line in text.splitlines() if line.startswith("drupe"))
    assert row.split()[1:3] == ["15", "0"]  # requests, errors


def test_hosted(tmp_path):
    run("hosted.py", "--only", "drupe", "--kernels", "3", "--rounds", "1", "--seconds", "1", "--kernels-only",
        "--json", str(tmp_path / "values"))
    drupe = json.loads((tmp_path / "values").read_text())["drupe"]
    assert drupe["lost"] == 0 and 0 < drupe["info"] <= drupe["start"] and drupe["memory"] > 10


def test_engine():
    text = run("engine.py", "--rounds", "1", "--built", "none")
    assert "| allocation and free from Python, host |" in text and "| host / OpenCL, the same |" in text


def test_loops():
    text = run("loops.py", "--rounds", "1", "--shrink", "50")
    rows = {tuple(re.split(" {2,}", line)[:2]): re.split(" {2,}", line)[2:] for line in text.splitlines()}
    for program in ("for k in range(4): x = x*0.5+1", "for k in range(2): y = xp.sin(y)*xp.exp(-x)", "%%timeit 2*x+1"):
        time, ratio, memory, arrays = rows[program, "numpy"]
        assert float(time) > 0 and ratio == "1.00" and arrays == "+0.0"
        assert 15 < float(memory) < 60  # two arrays of 8 MB at least, and no more than all of one line
        time, ratio, memory, arrays = rows[program, "host"]
        assert float(time) > 0 and float(ratio) > 0 and float(memory) > 7
    assert float(rows["the same, until the device is done", "host"][0]) > 0


def test_arrays():
    text = run("arrays.py", "--rounds", "1", "--only", "x + y, 1")
    rows = {re.split(" {2,}", line)[0]: re.split(" {2,}", line)[1:] for line in text.splitlines()}
    for title in ("x + y, 1 element", "x + y, 1,000 elements", "x + y, 1e5 float64"):
        ours, theirs, ratio, _, met = rows[title]
        assert float(ours) > 0 and float(theirs) > 0 and float(ratio) > 0 and met in ("met", "missed")


def table(text):
    return {re.split(" {2,}", line)[0]: re.split(" {2,}", line)[1:] for line in text.splitlines()}


def test_fusion():
    text = run("fusion.py", "--small", "--rounds", "1", "--sections", "expressions", "--only", "2*x*x+3*x-1, float64")
    *times, against_numpy, _, goal, met = table(text)["2*x*x+3*x-1, float64"]
    assert len(times) >= 4 and all(float(time) > 0 for time in times) and float(against_numpy) > 0
    assert goal == "4, 1.0" and met in ("met", "missed")
    text = run("fusion.py", "--small", "--rounds", "1", "--sections", "programs", "--only", "waves")
    rows = table(text)
    assert all(float(number) > 0 for number in rows["waves on a membrane, slices"][:5])



def test_wrong_values_end_the_run(tmp_path):
    spec = importlib.util.spec_from_file_location("bench_fusion", BENCH / "fusion.py")
    sys.path.insert(0, str(BENCH))
    try:
        fusion = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(fusion)
    finally:
        sys.path.remove(str(BENCH))
    values = numpy.arange(5.0)
    fusion.compare({"a": values}, {"a": values * (1 + 1e-9)}, 1e-6, "host")
    with pytest.raises(fusion.Differ, match="the values of host"):
        fusion.compare({"a": values}, {"a": values + 1}, 1e-6, "host")


def test_dashboard():
    text = run("dashboard.py", "--rounds", "1", "--turn", "0.05", "--seconds", "1")
    rows = {line.split("  ")[0]: line for line in text.splitlines()}
    assert "without it" in rows["submission beside the recorder, host"]
    assert "without it" in rows["submission beside recorder and live dashboard, host"]
    counted, missed = rows["a million submissions: counted, missed"].split()[-2:]
    assert sum(int(number.replace(",", "")) for number in (counted, missed)) >= 1000000


def test_the_page_keeps_what_is_around_the_figures(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("bench_report", BENCH / "report.py")
    report = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(report)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n")
    monkeypatch.setattr(report, "RESULTS", page)
    report.write("a", "new")
    report.write("a", "newer")
    assert page.read_text() == "before\n<!-- a -->\nnewer\n<!-- end of a -->\nafter\n"
    with pytest.raises(SystemExit):
        report.write("b", "text")


def test_imports_of_modules_for_other_systems():
    text = run("compat_import.py", "1")
    assert re.search(r"dpctl, all names +\d+\.\d\n", text) and re.search(r"dpctl.tensor +\d+\.\d   goal 20", text)
