"""Memory in cells: who holds it, by cell and line, in errors, reports and the log."""
import support


def test_an_error_and_a_report_name_the_cell(kernel):
    assert kernel.run("import drupe.memory as dm\npool = dm.pool('host')", timeout=60).status == "ok"
    run = kernel.run("pool.limit = pool.reserved + (4 << 20)\nheld = dm.MemoryUSMDevice(3 << 20, device='host')")
    assert run.status == "ok"
    number = run.reply["execution_count"]
    run = kernel.run("dm.MemoryUSMDevice(3 << 20, device='host')")
    assert run.status == "error" and run.reply["ename"] == "DeviceMemoryError"
    assert f"3.00 MiB (device, cell [{number}], line 2)" in run.reply["evalue"]
    run = kernel.run("pool.limit = None; dm.report()[0]")
    assert f"cell={number}" in run.result and "line=2" in run.result
    assert f"cell [{number}], line 2" in kernel.run("dm.report()").result


def test_what_is_held_at_the_end_is_in_the_log_only(spec_folder, tmp_path):
    log = tmp_path / "log"
    kernel = support.Kernel(spec_folder, {"DRUPE_LOG": str(log)})
    kernel.run("import drupe.memory as dm\nheld = dm.MemoryUSMDevice(5 << 20, device='host')", timeout=60)
    kernel.manager.shutdown_kernel()
    kernel.close()
    assert "at the end: 5242880 bytes of device memory on host:cpu:0 in 1 allocations" in log.read_text()
