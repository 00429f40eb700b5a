"""The names of ipykernel: with the real package installed and without it, and the magics that ipykernel has."""
import importlib.util
import json
import os

import pytest
import support


@pytest.fixture(params=["installed", "absent"])
def ipykernel(request, fresh):
    """A kernel in whose process the real ipykernel can be imported, or not."""
    if request.param == "absent":
        fresh.run("import drupe.jupyter.shims as s; s._installed = lambda: None")
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


def test_the_version_and_the_names_of_cells(ipykernel):
    run = ipykernel.run("import ipykernel, ipykernel.compiler as c, os\ndef f(): pass\nname = f.__code__.co_filename\n"
                        "(ipykernel.__version__, ipykernel.version_info[0] >= 7,\n"
                        " len(ipykernel.kernel_protocol_version_info),\n"
                        " os.path.dirname(name) == c.get_tmp_directory(), c.get_file_name(In[-1]) == name,\n"
                        " hex(c.get_tmp_hash_seed()), type(get_ipython().compile) is c.XCachingCompiler)")
    version, *rest = eval(run.result)
    assert version.count(".") == 2 and rest == [True, 2, True, True, "0xc70f6907", True]


def test_the_kernel_object(ipykernel):
    kernel = ipykernel
    run = kernel.run("import ipykernel.ipkernel as i, ipykernel.kernelbase as b\nip = get_ipython(); k = ip.kernel\n"
                     "(k.implementation, k.implementation_version.count('.'), k.language_info['name'],\n"
                     " 'Drupe' in k.banner,\n"
                     " k.help_links[0]['text'], k.log.name, k.user_ns is ip.user_ns, k.user_module is ip.user_module,\n"
                     " k._parent_ident['shell'], k._parent_ident['control'], k.shell is ip, ip.parent is k,\n"
                     " i.IPythonKernel.instance() is b.Kernel.instance() is k, k.profile_dir is ip.profile_dir,\n"
                     " 'debug_request' in k.control_handlers, k.session.session == k.ident,\n"
                     " k.execution_count == ip.execution_count)")
    found = eval(run.result)
    assert found == ("drupe", 2, "python", True, "Python Reference", "IPKernelApp", True, True, [], [], *[True] * 7)
    info = kernel.ask("kernel_info_request", {})
    run = kernel.run("k.kernel_info")
    assert {**info, **eval(run.result)} == info
    kernel.run("before = k.user_ns; k.user_ns = {**before, 'replaced': 1}")
    assert kernel.run("replaced, k.user_ns is ip.user_ns").result == "(1, True)"


def test_what_the_kernel_object_answers(kernel):
    kernel.run("k = get_ipython().kernel; some_name = 1")
    assert kernel.run("k.do_complete('some_n', 6)['matches'], k.do_is_complete('def f(')['status']"
                      ).result == "(['some_name'], 'incomplete')"
    assert kernel.run("k.do_inspect('some_name', 4)['found'], k.do_inspect('no_such_name', 4)['found']"
                      ).result == "(True, False)"
    assert kernel.run("k.do_history('tail', False, True, n=2)['history'][0][2]").result.count("some_name") > 0
    for call, password in (("k.raw_input('who? ')", False), ("k.getpass('who? ')", True)):
        cell = kernel.send(call, allow_stdin=True)
        assert kernel.asked(cell) == {"prompt": "who? ", "password": password}
        kernel.client.input("me")
        assert kernel.finish(cell).result == "'me'"


def test_displays_that_are_kept(kernel):
    if kernel.run("from IPython.core.history import HistoryOutput").status == "error":
        pytest.skip("IPython before 9 keeps no outputs")
    kernel.run("p = get_ipython().display_pub; p.store_display_history = True")
    run = kernel.run("display('one')\nIn")
    kernel.run("p.store_display_history = False; display('two')")
    number = run.reply["execution_count"]
    found = kernel.run("outputs = get_ipython().history_manager.outputs\n"
                       "{n: [o.bundle['text/plain'] for o in all] for n, all in outputs.items()"
                       " if any(o.output_type == 'display_data' for o in all)}").result
    assert eval(found)[number][0] == "'one'" and "two" not in found


@pytest.mark.parametrize("whose", ["ip", "ip.displayhook", "ip.display_pub", "sys.stdout", "sys.stderr"])
def test_a_thread_works_for_another_cell(kernel, whose):
    """As ipykernel 7.4 has it: a library's long-lived thread takes the parent of whoever it works for, and lets go."""
    cell = kernel.run("import sys, threading, queue\nip = get_ipython()\n"
                      "requests, done = queue.Queue(), queue.Queue()\n"
                      "def serve():\n"
                      "    for parent, text in iter(requests.get, None):\n"
                      "        token = %s.set_thread_parent(parent)\n"
                      "        print(text); display(text); %s.parent_header\n"
                      "        %s.reset_thread_parent(token)\n"
                      "        print('own', text); done.put(1)\n"
                      "thread = threading.Thread(target=serve); thread.start()" % (whose, whose, whose))
    run = kernel.run("requests.put((ip.get_parent(), 'for the second')); done.get(timeout=60)")
    assert "for the second\n" == run.text() and run.of("display_data")[0]["data"]["text/plain"] == "'for the second'"
    kernel.run("requests.put(None); thread.join()")
    messages = [m["content"].get("text") for m in support.pieces(kernel.of_parent(cell.id))
                if m["msg_type"] == "stream"]
    assert messages == ["own for the second\n"]


def test_tokens_that_come_back_in_any_order(kernel):
    """Libraries set stdout and stderr and reset them in the same order."""
    first = kernel.run("import sys; parent = get_ipython().get_parent()")
    run = kernel.run("one = sys.stdout.set_thread_parent(parent)\n"
                     "two = sys.stderr.set_thread_parent(parent['header'])\n"
                     "print('there')\nsys.stdout.reset_thread_parent(one); sys.stderr.reset_thread_parent(two)\n"
                     "print('here')\nget_ipython().parent_header['msg_id']")
    assert run.text() == "here\n" and run.result == repr(run.id)
    texts = [m["content"]["text"] for m in support.pieces(kernel.of_parent(first.id)) if m["msg_type"] == "stream"]
    assert texts == ["there\n"]


def test_tokens_that_nobody_keeps(kernel):
    """They do not add up, in a cell's context nor in a thread's."""
    kernel.run("import gc, sys, threading\n"
               "def tokens(): return sum(type(one).__name__ == '_Token' for one in gc.get_objects())\n"
               "def work(count):\n"
               "    for _ in range(count): sys.stdout.set_thread_parent(get_ipython().get_parent())\n"
               "    found.append(tokens() - before)")
    run = kernel.run("before, found = tokens(), []\nwork(50)\n"
                     "t = threading.Thread(target=work, args=(50,)); t.start(); t.join()\nwork(50)\nfound")
    assert run.result == "[0, 0, 0]"


def test_a_hook_that_prints_and_one_that_takes_itself_away(kernel):
    kernel.run("import sys\ndef loud(message):\n    print('in the hook'); return message\n"
               "def once(message):\n    sys.stdout.unregister_hook(once); return message\n"
               "def upper(message):\n"
               "    message['content']['text'] = message['content']['text'].upper(); return message")
    run = kernel.run("sys.stdout.register_hook(loud)\ntry: sys.stdout.write('text')\n"
                     "finally: sys.stdout.unregister_hook(loud);")
    assert run.status == "ok" and run.text() == "in the hook\ntext"
    run = kernel.run("sys.stdout.register_hook(once); sys.stdout.register_hook(upper)\n"
                     "try: print('first'); print('second')\nfinally: sys.stdout.unregister_hook(upper)")
    assert run.text() == "FIRST\nSECOND\n"


def test_hooks(kernel):
    """Of the display hook, the publisher and the streams: they see, change and swallow messages of their thread."""
    run = kernel.run("import sys\nip = get_ipython()\n"
                     "def change(message):\n"
                     "    data = message['content'].get('data')\n"
                     "    if data and 'secret' in data['text/plain']: return None\n"
                     "    if data: data['text/plain'] = 'changed'\n"
                     "    else: message['content']['text'] = message['content']['text'].upper()\n"
                     "    return message\n"
                     "for one in (ip.displayhook, ip.display_pub, sys.stdout): one.register_hook(change)\n"
                     "print('loud'); display(1); display('secret'); 2")
    assert run.text() == "LOUD\n" and run.result == "changed"
    assert [c["data"]["text/plain"] for c in run.of("display_data")] == ["changed"]
    assert kernel.run("'secret'").of("execute_result") == []
    assert kernel.run("[one.unregister_hook(change) for one in (ip.displayhook, ip.display_pub, sys.stdout)] * 2"
                      ).result == str([True] * 6)
    assert kernel.run("print('still'); sys.stdout.unregister_hook(change)").text() == "still\n"


def test_streams_know_their_process(kernel):
    run = kernel.run("import os, sys\nend, start = os.pipe()\nif os.fork() == 0:\n"
                     "    try: os.write(start, str(sys.stdout._is_master_process()).encode())\n"
                     "    finally: os._exit(0)\n"
                     "os.close(start)\n"
                     "(os.read(end, 9), sys.stdout._is_master_process(), sys.stderr._is_master_process(),\n"
                     " sys.stdout.topic)")
    assert run.result == "(b'False', True, True, b'stream.stdout')"


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
