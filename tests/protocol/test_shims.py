"""The names of ipykernel: with the real package installed and without it, and the magics that ipykernel has."""
import importlib.util
import json
import os

import pytest


@pytest.fixture(params=["installed", "absent"])
def ipykernel(request, fresh):
    """A kernel in whose process the real ipykernel can be imported, or not."""
    if request.param == "absent":
        fresh.run("import drupe.kernel.shims as s; s._installed = lambda: None")
    elif fresh.run("import importlib.metadata as m; m.version('ipykernel')").status == "error":
        pytest.skip("the real ipykernel is not installed here")
    return fresh


def test_nothing_is_imported_at_the_start(fresh):
    run = fresh.run("import sys; sorted({'comm', 'ipykernel.kernelbase', 'zmq', 'jupyter_client'} & set(sys.modules)), "
                    "{'ipykernel', 'ipykernel.zmqshell', 'ipykernel.comm'} <= set(sys.modules)")
    assert run.result == "([], True)"


def test_how_libraries_recognise_a_kernel(ipykernel):
    run = ipykernel.run("import sys, importlib.util, ipykernel.zmqshell, ipykernel.iostream\n"
                        "shell = get_ipython()\n"
                        "(type(shell).__name__, type(shell).__module__, type(sys.stdout).__module__,\n"
                        " isinstance(shell, ipykernel.zmqshell.ZMQInteractiveShell),\n"
                        " isinstance(sys.stdout, ipykernel.iostream.OutStream), 'IPKernelApp' in shell.config,\n"
                        " hasattr(shell, 'kernel'), importlib.util.find_spec('ipykernel') is not None,\n"
                        " ipykernel.version_info >= (6, 18))")
    assert eval(run.result) == ("ZMQInteractiveShell", "ipykernel.zmqshell", "ipykernel.iostream") + (True,) * 6


def test_comms_of_ipykernel_are_ours(ipykernel):
    run = ipykernel.run("import ipykernel.ipkernel, ipykernel.kernelbase\n"
                        "from ipykernel.comm import Comm, CommManager\n"
                        "from ipykernel.comm.manager import CommManager as M2\n"
                        "import comm\nc = Comm(target_name='t', data={'a': 1}); d = comm.create_comm('u')\n"
                        "m = get_ipython().kernel.comm_manager\n"
                        "m is CommManager() is comm.get_comm_manager() is M2(parent=None), c.comm_id in m.comms")
    assert run.result == "(True, True)"
    assert [c["target_name"] for c in run.of("comm_open")] == ["t", "u"]
    comm_id = ipykernel.run("c.on_msg(lambda m: print('heard')); c.comm_id").result.strip("'")
    assert ipykernel.comm("comm_msg", {"comm_id": comm_id, "data": 1}).text() == "heard\n"


def test_the_connection_file(ipykernel):
    run = ipykernel.run("import ipykernel, ipykernel.connect\nfrom ipykernel import get_connection_file\n"
                        "(get_connection_file(), ipykernel.connect.get_connection_info(unpack=True)['key'],\n"
                        " get_ipython().config['IPKernelApp']['connection_file'])")
    path, key, configured = eval(run.result)
    assert os.path.samefile(path, ipykernel.manager.connection_file) and configured == path
    assert key == ipykernel.manager.session.key


def test_modules_that_come_from_the_real_package_or_from_us(ipykernel):
    run = ipykernel.run("from ipykernel.kernelapp import IPKernelApp\nfrom ipykernel.kernelbase import Kernel\n"
                        "from ipykernel.ipkernel import IPythonKernel\nfrom ipykernel.jsonutil import json_clean\n"
                        "import ipykernel.kernelapp\n"
                        "json_clean({'a': [1]}), ipykernel.kernelapp.IPKernelApp is IPKernelApp")
    assert run.result == "({'a': [1]}, True)"
    run = ipykernel.run("import ipykernel.no_such_module")
    assert run.reply["ename"] == "ModuleNotFoundError"
    assert ipykernel.run("from ipykernel.zmqshell import no_such_name").reply["ename"] == "ImportError"


def test_the_running_app(ipykernel):
    run = ipykernel.run("from ipykernel.kernelapp import IPKernelApp\napp = IPKernelApp.instance()\n"
                        "IPKernelApp.initialized(), app.kernel is get_ipython().kernel, app.shell is get_ipython()")
    assert run.result == "(True, True, True)"
    assert "process of its own" in ipykernel.run("IPKernelApp.launch_instance()").reply["evalue"]
    run = ipykernel.run("from IPython.core.application import BaseIPythonApplication as B; B.instance() is app")
    assert run.result == "True"


@pytest.mark.skipif(importlib.util.find_spec("ipykernel") is None, reason="the real ipykernel is not installed")
def test_real_classes_can_be_imported_and_subclassed(fresh):
    run = fresh.run("from ipykernel.kernelbase import Kernel\nclass Mine(Kernel):\n    implementation = 'mine'\n"
                        "from ipykernel.iostream import IOPubThread\nfrom ipykernel.embed import embed_kernel\n"
                        "Mine.implementation, IOPubThread.__name__")
    assert run.result == "('mine', 'IOPubThread')"
    assert fresh.run("1 + 1").result == "2"


# --- magics ---


def test_edit(kernel, tmp_path):
    path = tmp_path / "a file.py"
    path.write_text("x = 1\n")
    (payload,) = kernel.run("%%edit -n 3 '%s'" % path).reply["payload"]
    assert payload == {"source": "edit_magic", "filename": str(path), "line_number": 3}
    assert kernel.run("%edit -p").reply["payload"] == [{**payload, "line_number": 0}]
    kernel.run("def defined_here(): pass")
    (payload,) = kernel.run("%edit -x defined_here").reply["payload"]
    assert "defined_here" in open(payload["filename"]).read()
    kernel.run("m = get_ipython().run_line_magic('macro', '-q mac 1')")
    assert "macro" in kernel.run("%edit mac").text("stderr")


def test_pagers(kernel, tmp_path):
    (tmp_path / "t.txt").write_text("paged text")
    for magic in ("less", "more"):
        (page,) = kernel.run("%%%s %s" % (magic, tmp_path / "t.txt")).reply["payload"]
        assert page["source"] == "page" and page["data"]["text/plain"] == "paged text"
    for line, words in (("less", "needs the name"), ("less /no/such", "cannot read /no/such"),
                        ("man", "needs the name")):
        assert words in kernel.run("%" + line).text("stderr")


def test_man(kernel, tmp_path):
    program = tmp_path / "man"
    program.write_text("#!/bin/sh\nprintf 'N\\bNA\\bA _\\bx for %s' \"$1\"\n[ \"$1\" != nothing ] || exit 16\n")
    program.chmod(0o755)
    kernel.run("import os; path = os.environ['PATH']; os.environ['PATH'] = %r + ':' + path" % str(tmp_path))
    (page,) = kernel.run("%man ls").reply["payload"]
    assert page["data"]["text/plain"] == "NA x for ls"
    assert "no manual page for nothing" in kernel.run("%man nothing").text("stderr")
    kernel.run("os.environ['PATH'] = path")


def test_clear_connect_info_autosave_qtconsole(kernel):
    assert kernel.run("print('x')\n%clear").of("clear_output") == [{"wait": False}]
    info = kernel.run("%connect_info").text()
    assert json.loads(info[:info.index("}") + 1])["shell_port"] == kernel.manager.shell_port
    assert "--existing" in info
    assert "its own settings" in kernel.run("%autosave 60").text()
    assert "number of seconds" in kernel.run("%autosave often").text("stderr")
    kernel.run("import importlib.util as u; real = u.find_spec\n"
               "u.find_spec = lambda n: None if n == 'qtconsole' else real(n)")
    assert "pip install qtconsole" in kernel.run("%qtconsole").text("stderr")
    kernel.run("u.find_spec = real")
