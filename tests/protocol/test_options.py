"""Options of IPython and ipykernel: on the command line, through both doors, and in ipython_kernel_config.py."""
import json
import os
import subprocess
import sys

import debugging
import pytest
import support

BOTH = ["drupe", "drupe-kernel"]


@pytest.fixture
def start(spec_folder, tmp_path):
    """A function that starts a kernel with options behind `-f FILE`; its log is in `kernel.log_file`."""
    started = []

    def start(*options, door="drupe", config=None, **environment):
        spec = json.loads((spec_folder / door / "kernel.json").read_text())
        ipython = tmp_path / "ipython"
        (ipython / "profile_default").mkdir(parents=True, exist_ok=True)
        if config is not None:
            (ipython / "profile_default" / "ipython_kernel_config.py").write_text("c = get_config()\n" + config)
        spec["argv"] += options
        spec["env"] = {"IPYTHONDIR": str(ipython), "DRUPE_LOG": str(tmp_path / "log"), **environment}
        folder = tmp_path / "kernels"
        (folder / "python3").mkdir(parents=True, exist_ok=True)
        (folder / "python3" / "kernel.json").write_text(json.dumps(spec))
        kernel = support.Kernel(folder, name="python3")
        started.append(kernel)
        kernel.log_file = tmp_path / "log"
        return kernel

    yield start
    for kernel in started:
        kernel.close()


@pytest.mark.parametrize("door", BOTH)
def test_options_have_their_effect(start, door, tmp_path):
    profile = tmp_path / "mine"
    profile.mkdir()
    startup = tmp_path / "more.py"
    startup.write_text("c = get_config()\nc.InteractiveShell.separate_in = 'from more.py'\n")
    kernel = start("--HistoryManager.hist_file=:memory:", "--profile-dir", str(profile),
                   "--InteractiveShell.xmode=Plain", "--IPCompleter.use_jedi=False",
                   "--ZMQInteractiveShell.cache_size=77", "--no-automagic", "--matplotlib=inline", "--ext=autoreload",
                   "--IPKernelApp.exec_lines=a = 1", "--IPKernelApp.exec_lines=b = a + 1", "-c", "c = b + 1",
                   "--InlineBackend.figure_formats={'svg'}", "--debug", "--config", str(startup),
                   door=door)
    run = kernel.run("import os, sys, matplotlib; ip = get_ipython()\n"
                     "(ip.history_manager.hist_file, ip.profile_dir.location, ip.InteractiveTB.mode, ip.cache_size,\n"
                     " ip.automagic, 'inline' in matplotlib.get_backend(),\n"
                     " 'autoreload' in ip.magics_manager.magics['line'],\n"
                     " (a, b, c), ip.separate_in, ip.parent.parent.log.getEffectiveLevel(), ip.Completer.use_jedi)")
    assert eval(run.result) == (":memory:", str(profile), "Plain", 77, False, True, True, (1, 2, 3),
                                "from more.py", 10, False)
    run = kernel.run("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    assert "image/svg+xml" in run.of("display_data")[0]["data"]


def test_every_flag_and_alias_of_ipykernel_is_taken(start):
    """What has no effect says so; nothing keeps the kernel from its start."""
    flags = ["autoindent", "automagic", "color-info", "debug", "ignore-cwd", "init", "matplotlib", "no-autoindent",
             "no-automagic", "no-color-info", "no-ignore-cwd", "no-pdb", "no-pprint", "no-secure", "no-stderr",
             "no-stdout", "nosep", "pprint", "secure"]
    aliases = {"autocall": "1", "cache-size": "5", "colors": "nocolor", "control": "1", "hb": "1", "ident": "x",
               "iopub": "1", "ip": "0.0.0.0", "keyfile": "/none", "log-level": "20", "m": "this", "profile": "default",
               "shell": "1", "stdin": "1", "transport": "tcp", "user": "me"}
    kernel = start(*("--" + name for name in flags), *("-%s%s=%s" % ("-" if len(k) > 1 else "", k, v)
                                                      for k, v in aliases.items()))
    assert kernel.run("get_ipython().cache_size, get_ipython().autocall, 'Gur Mra' in s, '' in __import__('sys').path"
                      ).result == "(5, 1, True, True)"
    log = kernel.log_file.read_text()
    assert "Unrecognized" not in log
    for name in ("IPKernelApp.shell_port", "IPKernelApp.no_stdout", "Session.username", "Session.session"):
        assert name + " has no effect in this kernel: " in log
    run = kernel.run("app = get_ipython().kernel.parent; app.shell_port, app.ip, app.transport")
    assert eval(run.result)[1:] == ("127.0.0.1", "tcp")


def test_what_cannot_be_understood_costs_only_itself(start, capfd):
    kernel = start("--frobnicate=3", "--InteractiveShell.cache_size=many", "-c", "--pylab=no_such_backend", "--gui=qt",
                   "--InteractiveShell.autocall=1", "--NoSuchClass.trait=1", "--InteractiveShell.no_such=2",
                   "--profile=nobody", "--ext=no_such_extension", "stray", "--", "-c", "exit()")
    assert kernel.run("get_ipython().autocall, get_ipython().cache_size").result == "(1, 1000)"
    log = kernel.log_file.read_text()
    for words in ("Unrecognized alias: 'frobnicate'", "InteractiveShell.cache_size is left out",
                  "-c is left out", "IPKernelApp.pylab is left out",
                  "`no_such` not recognized", "Profile 'nobody' not found",
                  "the default profile is taken", "Error in loading extension: no_such_extension"):
        assert words in log, log
    assert capfd.readouterr() == ("", "")  # a kernel writes nothing to the terminal


def test_what_is_wrong_is_told_once_and_by_its_name(start):
    kernel = start("--HistoryManager.enabled=maybe", "--IPKernelApp.no_such=2", "-c", "--frobnicate=3",
                   config="c.HistoryManager.db_cache_size = []\nc.IPKernelApp.no_such_either = 1\n")
    assert kernel.run("1").result == "1"
    log = kernel.log_file.read_text()
    assert "IPKernelApp instance" not in log
    for line in ("HistoryManager.enabled is left out: ", "HistoryManager.db_cache_size is left out: ",
                 "`no_such` not recognized", "`no_such_either` not recognized", "Unrecognized alias: 'frobnicate'"):
        assert log.count(line) == 1, log
    assert "HistoryManager.enabled is left out: 'maybe'" in log
    assert "HistoryManager.db_cache_size is left out: []" in log


def test_the_log_is_in_no_cell(start):
    kernel = start("--debug")
    run = kernel.run("log = get_ipython().kernel.log; log.warning('to whom it may concern'); log.debug('quiet')")
    assert run.types == ["status", "execute_input", "status"]
    message = kernel.wait_iopub(lambda m: m["msg_type"] == "stream" and "concern" in m["content"]["text"])
    assert message["parent_header"] == {} and message["content"]["name"] == "stderr"
    assert "to whom it may concern" in kernel.log_file.read_text() and "quiet" in kernel.log_file.read_text()


def test_the_connection_file_is_found_among_options(spec_folder, tmp_path):
    folder = tmp_path / "kernels"
    (folder / "python3").mkdir(parents=True)
    spec = json.loads((spec_folder / "drupe" / "kernel.json").read_text())
    for file in (["--f={connection_file}"], ["--IPKernelApp.connection_file={connection_file}"],
                 ["--connection-file", "{connection_file}"], ["-f={connection_file}"],
                 ["-f{connection_file}"]):
        spec["argv"] = [sys.executable, "-m", "drupe", "--no-automagic", *file, "--InteractiveShell.autocall=2"]
        (folder / "python3" / "kernel.json").write_text(json.dumps(spec))
        kernel = support.Kernel(folder, name="python3")
        try:
            assert kernel.run("get_ipython().automagic, get_ipython().autocall").result == "(False, 2)"
        finally:
            kernel.close()


def test_nothing_more_is_imported_without_options(fresh):
    run = fresh.run("import sys; sorted({'argparse', 'drupe.jupyter.options'} & set(sys.modules))")
    assert "drupe.jupyter.options" not in run.result


# --- ipython_kernel_config.py ---


def test_the_configuration_of_ipykernel(start, tmp_path):
    (tmp_path / "a.py").write_text("from_file = 'a.py'\n")
    (tmp_path / "pythonstartup.py").write_text("from_startup = 1\n")
    config = """
c.IPKernelApp.exec_lines = ['one = 1', '%%time two = 2', 'broken (']
c.IPKernelApp.exec_files = [%r]
c.IPKernelApp.code_to_run = 'three = 3'
c.IPKernelApp.matplotlib = 'inline'
c.IPKernelApp.extensions = ['autoreload']
c.IPKernelApp.extra_extensions = ['drupe_test_extension']
c.IPKernelApp.hide_initial_ns = False
c.IPKernelApp.exec_PYTHONSTARTUP = True
c.IPKernelApp.no_such_option = 1
c.IPKernelApp.quiet = False
c.IPythonKernel.use_experimental_completions = False
c.Kernel.debug_just_my_code = True
c.ZMQInteractiveShell.ast_node_interactivity = 'all'
""" % str(tmp_path / "a.py")
    (tmp_path / "drupe_test_extension.py").write_text("def load_ipython_extension(ip): ip.push({'extended': True})\n")
    kernel = start(config=config, PYTHONPATH=str(tmp_path), PYTHONSTARTUP=str(tmp_path / "pythonstartup.py"))
    assert kernel.run("[one, two, three, from_file, extended]").result == "[1, 2, 3, 'a.py', True]"
    # As in ipykernel: code_to_run stands in for PYTHONSTARTUP.
    assert kernel.run("'from_startup' in globals(), 'one' in get_ipython().user_ns_hidden").result == "(False, False)"
    assert "inline" in kernel.run("import matplotlib; matplotlib.get_backend()").result
    assert [c["data"]["text/plain"] for c in kernel.run("1\n2").of("execute_result")] == ["1", "2"]
    assert kernel.run("get_ipython().kernel.debug_just_my_code").result == "True"
    reply = kernel.ask("complete_request", {"code": "from_f", "cursor_pos": 6})
    assert reply["matches"] == ["from_file"] and reply["metadata"] == {}
    log = kernel.log_file.read_text()
    assert "`no_such_option` not recognized" in log and "IPKernelApp.quiet has no effect" in log


def test_a_bad_value_in_the_configuration_costs_only_itself(start):
    kernel = start(config="c.InteractiveShell.cache_size = 'many'\nc.IPKernelApp.pylab = 'nonsense'\n"
                          "c.HistoryManager.db_cache_size = []\nc.IPKernelApp.exec_lines.append('one = 1')\n"
                          "c.InteractiveShell.autocall = 1\n")
    assert kernel.run("get_ipython().autocall, get_ipython().cache_size, one").result == "(1, 1000, 1)"
    log = kernel.log_file.read_text()
    for name in ("InteractiveShell.cache_size", "IPKernelApp.pylab", "HistoryManager.db_cache_size"):
        assert name + " is left out: " in log


def test_options_count_more_than_the_configuration(start):
    kernel = start("--IPKernelApp.code_to_run=who = 'option'", "--InteractiveShell.autocall=2",
                   config="c.IPKernelApp.code_to_run = 'who = 1'\nc.InteractiveShell.autocall = 1\n")
    assert kernel.run("who, get_ipython().autocall").result == "('option', 2)"


def test_initial_names_are_hidden_and_pythonstartup_runs(start, tmp_path):
    (tmp_path / "pythonstartup.py").write_text("from_startup = 1\n")
    kernel = start(config="c.IPKernelApp.exec_lines = ['one = 1']", PYTHONSTARTUP=str(tmp_path / "pythonstartup.py"))
    assert kernel.run("one + from_startup").result == "2"
    assert "No variables match" in kernel.run("%who int").text()


def test_pylab(start):
    kernel = start("--pylab=inline")
    assert kernel.run("linspace(0, 1, 3).sum(), 'inline' in plt.get_backend()").result.endswith("True)")


STEPS = "import graphlib\nvalue = graphlib.TopologicalSorter().add(1)\nvalue"


def stops(kernel):
    """Whether a breakpoint in the standard library is met, and whether one in a cell shows frames of the kernel."""
    front = debugging.Front(kernel).start()
    path, line = eval(kernel.run("import graphlib; code = graphlib.TopologicalSorter.add.__code__\n"
                                 "code.co_filename, min({n for *_, n in code.co_lines()} - {code.co_firstlineno, None})"
                                 ).result)
    front.get("setBreakpoints", {"breakpoints": [{"line": line}], "source": {"path": path}})
    front.breakpoints(STEPS, 3)
    msg_id = kernel.send(STEPS)
    thread, frame = front.stopped()
    met = frame["source"]["path"] == path
    if met:
        front.go_on(thread)
        thread, frame = front.stopped()
    shown = any("drupe/jupyter" in one["source"]["path"] for one in front.frames(thread))
    front.go_on(thread)
    assert kernel.finish(msg_id).status == "ok"
    front.stop()
    return met, shown


def test_what_the_debugger_passes_by(start):
    assert stops(start()) == (True, False)
    assert stops(start("--Kernel.debug_just_my_code=True")) == (False, False)
    assert stops(start("--IPythonKernel.filter_internal_frames=False")) == (True, True)


# --- one name for all cells ---


def test_cells_get_the_name_that_the_environment_tells(start, tmp_path):
    """A profiler of the whole notebook wants one file for all cells. Nothing is written to it."""
    path = tmp_path / "notebook.py"
    path.write_text("mine")
    kernel = start(IPYKERNEL_CELL_NAME=str(path))
    for number in (1, 2):
        run = kernel.run("def f%d(): pass\nf%d.__code__.co_filename" % (number, number))
        assert run.result == repr(str(path))
    run = kernel.run("x = 1\n1/0")
    assert "In[3]" in "".join(run.reply["traceback"]).replace(" ", "") or "In [3]" in "".join(run.reply["traceback"])
    message = kernel.client.session.msg("debug_request", {"type": "request", "seq": 1, "command": "dumpCell",
                                                          "arguments": {"code": "y = 2"}})
    kernel.client.control_channel.send(message)
    reply = kernel.client.get_control_msg(timeout=support.TIMEOUT)["content"]
    assert reply["body"] == {"sourcePath": str(path)} and path.read_text() == "mine"


def test_the_name_of_the_session(start):
    assert start(JPY_SESSION_NAME="work/in.ipynb").run("__session__").result == "'work/in.ipynb'"


# --- without a kernel ---


def drupe(*arguments, **environment):
    return subprocess.run([sys.executable, "-m", "drupe", *arguments], capture_output=True, text=True, timeout=120,
                          check=False, env={**os.environ, **environment})


def test_what_options_there_are(tmp_path):
    done = drupe("--help-all")
    assert done.returncode == 0 and done.stderr == ""
    for option in ("--matplotlib=", "--profile-dir=", "--InteractiveShell.cache_size=", "--IPKernelApp.exec_lines=",
                   "--Kernel.debug_just_my_code=", "No effect: the connection file tells it."):
        assert option in done.stdout
    done = drupe("-f", "/no/such/file", "--InteractiveShell.autocall=2", "--show-config", IPYTHONDIR=str(tmp_path))
    assert done.returncode == 0 and done.stdout.split() == ["InteractiveShell", ".autocall", "=", "2"], done.stderr
    done = drupe("--show-config-json", "--InteractiveShell.autocall=2", IPYTHONDIR=str(tmp_path))
    assert json.loads(done.stdout)["InteractiveShell"] == {"autocall": 2}
    done = drupe("-f", "/no/such/file", "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: python -m drupe")
    done = drupe("-f")
    assert done.returncode == 2 and "path of a connection file" in done.stderr
