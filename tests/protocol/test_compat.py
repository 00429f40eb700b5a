"""Programs for other systems, in cells: who is answered, and the setting."""
import json

import pytest
import support


@pytest.mark.parametrize("environment, answered", [({}, True), ({"DRUPE_COMPAT": "0"}, False)])
def test_cells_are_answered(spec_folder, environment, answered):
    kernel = support.Kernel(spec_folder, environment)
    try:
        run = kernel.run("import dpctl")
        if not answered:
            assert run.reply["ename"] == "ModuleNotFoundError"
            assert kernel.run("%config Drupe.compat").result == "False"
            kernel.run("%config Drupe.compat = True")
            run = kernel.run("import dpctl")
        assert run.status == "ok" and run.text("stderr") == (
            "dpctl is answered by Drupe (drupe.compat.dpctl); docs/compat-dpctl.md says what differs\n")
        assert not kernel.run("def later():\n    import dpctl.memory\n    return dpctl.memory\nlater()").text("stderr")
        assert kernel.run("%config Drupe.compat").result == "True"
        assert kernel.run("%config Drupe.compat = False").status == "ok"
        assert kernel.run("import dpctl").reply["ename"] == "ModuleNotFoundError"
    finally:
        kernel.close()


def test_errors_of_other_imports_are_as_before(kernel):
    before = kernel.run("import not_there_at_all")
    kernel.run("import dpctl")
    after = kernel.run("import not_there_at_all")
    assert after.reply["evalue"] == before.reply["evalue"]
    assert "_finder" not in "".join(after.reply["traceback"])
    assert len(after.reply["traceback"]) == len(before.reply["traceback"])


def test_scripts_that_a_cell_runs(kernel, tmp_path):
    (tmp_path / "script.py").write_text("import helper_of_script\nprint(helper_of_script.dpctl.__name__)\n")
    (tmp_path / "helper_of_script.py").write_text("import dpctl\n")
    assert kernel.run(f"import sys; sys.path.insert(0, {str(tmp_path)!r})").status == "ok"
    assert kernel.run(f"%run {tmp_path / 'script.py'}").text() == "drupe.compat.dpctl\n"


def test_the_setting_tells_what_is(fresh):
    """Also where a program has switched by itself."""
    fresh.run("import drupe; drupe.compat.disable()")
    assert fresh.run("%config Drupe.compat").result == "False"
    assert fresh.run("%config Drupe.compat = True").status == "ok" and fresh.run("import dpctl").status == "ok"
    fresh.run("drupe.compat.disable()\n%config Drupe.compat = True")
    assert fresh.run("%config Drupe.compat").result == "True" and fresh.run("import dpctl").status == "ok"
    assert "Drupe.compat" in fresh.run("%config Drupe").text()


def test_the_profile_switches_off(spec_folder, tmp_path):
    (tmp_path / "profile_default").mkdir()
    (tmp_path / "profile_default/ipython_kernel_config.py").write_text("c.Drupe.compat = False\n")
    (tmp_path / "kernels/drupe").mkdir(parents=True)
    known = json.loads((spec_folder / "drupe/kernel.json").read_text())
    (tmp_path / "kernels/drupe/kernel.json").write_text(json.dumps({**known, "env": {"IPYTHONDIR": str(tmp_path)}}))
    kernel = support.Kernel(tmp_path / "kernels")
    try:
        assert kernel.run("import dpctl").reply["ename"] == "ModuleNotFoundError"
        assert kernel.run("%config Drupe.compat").result == "False"
    finally:
        kernel.close()


def test_names_that_are_answered_are_completed(kernel):
    def completed(code):
        return kernel.ask("complete_request", {"code": code, "cursor_pos": len(code)})["matches"]

    for before in ("import ", "import os, ", "x = 1\nfrom "):
        assert {"dpctl", "dpnp"} <= set(completed(before + "dp"))
    assert "pymic" not in completed("pymi") and "pymic" in completed("import pymi")
    assert "glob" in completed("import glo")
    kernel.run("import drupe.compat\ndrupe.compat.disable()")
    try:
        assert "dpctl" not in completed("import dp")
    finally:
        kernel.run("drupe.compat.enable()")
