"""jupyter console in a terminal: everything has a plain form, and what is typed has its effect."""
import os
import re
import sys
import time

import pexpect
import pytest

TIMEOUT = 60
ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Console:
    """A terminal with jupyter console in it, which reads plain lines."""

    test_mode = True

    def __init__(self, data_folder, *arguments, kernel=("--kernel", "drupe"), columns=200):
        paths = [str(data_folder), os.environ.get("JUPYTER_PATH", "")]
        environment = {**os.environ, "JUPYTER_PATH": os.pathsep.join(paths), "PROMPT_TOOLKIT_NO_CPR": "1",
                       "PAGER": "cat", "TERM": "xterm"}
        if self.test_mode:
            environment["JUPYTER_CONSOLE_TEST"] = "1"
        self.terminal = pexpect.spawn(sys.executable, ["-m", "jupyter_console", *kernel, *arguments], env=environment,
                                      timeout=TIMEOUT, encoding="utf-8", dimensions=(50, columns))
        self.banner = self.prompt()

    def expect(self, pattern):
        """Wait for a pattern; the text before it, without colours."""
        self.terminal.expect(pattern)
        return ANSI.sub("", self.terminal.before).replace("\r", "")

    def prompt(self):
        """Wait for the next prompt; the text since the last one."""
        return self.expect(r"In \[\d+\]: ")

    def type(self, line):
        """Type a line at the prompt and see it echoed."""
        self.terminal.sendline(line)
        self.terminal.expect_exact(line)

    def run(self, line):
        self.type(line)
        return self.prompt()

    def interrupt(self):
        """Press Ctrl-C until it is noticed: the console passes it on only once it takes the kernel for busy, and
        Python's readline misses a signal that comes just before it begins to wait."""
        for _ in range(4):
            self.terminal.sendintr()
            if self.terminal.expect(["KeyboardInterrupt", pexpect.TIMEOUT], timeout=15) == 0:
                return
        raise AssertionError("the cell is not interrupted")

    def close(self):
        self.terminal.close(force=True)


@pytest.fixture
def console(data_folder):
    opened = Console(data_folder, "--ZMQTerminalInteractiveShell.image_handler=None")
    yield opened
    opened.close()


def test_what_devices_report(console):
    """An error that comes late, with its line; an event that is not over; a bar, which ends up complete."""
    console.run("%colors NoColor")
    console.run("import drupe, testwork; from drupe import _engine; queue = drupe.Queue('host'); "
                "gate = _engine._event_open('gate')")
    console.run("event = testwork.task(queue, 0.0, 'the bearing broke', [gate])")
    assert "Event task: queued" in console.run("event")
    shown = console.run("import threading; threading.Timer(0.5, gate._finish).start()")
    end = time.monotonic() + TIMEOUT
    while "Host function 'task', host:cpu:0, queue" not in shown:  # the console looks when a cell has run
        assert time.monotonic() < end, shown
        shown += console.run("pass")
    assert "In[3], line 1\n----> 1 event = testwork.task(queue, 0.0" in shown
    assert "failed (cell [3], line 1): the bearing broke\n" in shown
    console.run("pass")  # raises it, if no cell has done that yet: till then, what is new on the queue fails with it
    console.type("drupe.progress([queue.barrier(), testwork.task(queue, 1.2)], 'sweep').wait();")
    assert "sweep   50 % [" in console.expect(r"2/2 .* done")


def test_a_session(console):
    assert "Jupyter console" in console.banner and "Drupe" in console.banner and "Python" in console.banner
    assert "Out[1]: 42" in console.run("6*7")
    assert "Out[2]: 43" in console.run("_ + 1")
    assert "to stdout\n" in console.run("print('to stdout')")
    assert "to stderr\n" in console.run("import sys; print('to stderr', file=sys.stderr)")
    assert "from a child\n" in console.run("!echo from a child")
    failed = console.run("1/0")
    assert "ZeroDivisionError" in failed and "division by zero" in failed and "1/0" in failed
    assert "SyntaxError" in console.run("x = = 1")
    assert "Figure" in console.run("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    device = console.run("import drupe; drupe.Device('host')")
    assert "Device " in device and ": host:cpu:0\n" in device and "compute units" in device
    assert "alive" in console.run("print('alive')")


def test_pictures_of_devices_are_text(console):
    console.run("import drupe.array as da; x = da.ones(1000); x.queue.wait()")
    shown = console.run("%events")
    assert "CPU busy" in shown and "queue 1 copies" in shown and "device time" in shown and "\u2588" in shown
    shown = console.run("%memory")
    assert "host:cpu:0" in shown and "peak" in shown and "cell [1], line 1" in shown
    console.run("%dashboard")
    shown = console.run("for i in range(9): x = x + 1")
    assert "9 kernels" in shown and "busy" in shown
    console.run("%dashboard off")
    assert "kernels" not in console.run("x = x + 1")
    console.run("%config Drupe.footer = True")
    assert "wall \u00b7 CPU" in console.run("(x + 1).queue.wait()")


def test_pictures_fit_the_terminal(console):
    """Eighty columns, as nobody tells the kernel how many there are, or what was asked for."""
    console.run("import drupe.array as da; x = da.ones(1000, dtype='float32'); y = (x + x).sum(); x.queue.wait()")
    for line in ("%events", "%events --table", "%memory", "%memory --cells", "%devices -v", "%queue", "%dashboard",
                 "y = x + 1", "%events -h"):
        lines = console.run(line).splitlines()
        assert len(lines) > (2 if line != "%queue" else 1) and max(map(len, lines)) <= 80, "\n".join(lines)
    console.run("%config Drupe.columns = 120")
    assert 100 < max(map(len, console.run("%events").splitlines())) <= 120


def test_questions(console):
    console.type("name = input('your name? ')")
    console.expect(r"your name\? ")
    console.terminal.sendline("Zoë")
    console.prompt()
    assert "Out[2]: 'Zoë'" in console.run("name")

    console.type("import getpass; secret = getpass.getpass('the word? ')")
    console.expect(r"the word\? ")
    console.terminal.waitnoecho(TIMEOUT)
    console.terminal.sendline("hush")
    assert "hush" not in console.prompt()
    assert "Out[4]: 'hush'" in console.run("secret")

    console.type("input('more? ')")
    console.expect(r"more\? ")
    console.terminal.sendeof()
    assert "EOFError" in console.prompt()


def test_interrupts(console):
    for endless in ("while True: pass", "import time; time.sleep(600)", "import threading; threading.Event().wait()"):
        for _ in range(3):  # a terminal that is being set for the next prompt may drop what is typed meanwhile
            console.type("print('be' + 'gun', flush=True); exec(%r)" % endless)
            if console.terminal.expect(["begun", pexpect.TIMEOUT], timeout=20) == 0:
                break
        else:
            pytest.fail("nothing that was typed has run")
        console.interrupt()
        console.prompt()
    console.type("input('still there? ')")
    console.expect(r"still there\? ")
    console.interrupt()
    console.prompt()
    assert "alive" in console.run("print('alive')")


def test_pages(console):
    assert "Return the number of items in a container" in console.run("len?")
    console.run("import json")
    assert "def dumps(" in console.run("json.dumps??")
    assert "Available line magics" in console.run("%lsmagic")


def test_magics(data_folder):
    """The text form of every magic that needs no driver, in a terminal of 80 columns."""
    console = Console(data_folder, columns=80)
    try:
        console.run("import drupe.array as da; x = da.ones(8, device='host')")
        assert re.search(r"^host:cpu:0", console.run("%devices host:0"), re.MULTILINE)
        assert "host:cpu:0" in console.run("%device host")
        assert "2 runs of 3 loops" in console.run("%devtime -n 3 -r 2 x + 1")
        assert re.search(r"^queue +device +order +depth", console.run("%queue"), re.MULTILINE)
        assert "no failures" in console.run("%deverrors")
        assert "cell [" in console.run("%memory --by place")
        assert re.search(r"kernels?\b", console.run("%events"))
        assert "Traceback" not in console.run("%dashboard off")
        assert re.search(r"does not compile|f\(int", console.run("get_ipython().run_cell_magic('opencl', '--check', "
                                                                "'kernel void f(global int *a) { a[0] = 1; }')"))
        assert "UsageError: %queue" in console.run("%queue --bad")
        assert "Drupe.profile" in console.run("%config Drupe")
        assert "Examples:" in console.run("%devtime -h")
        assert "Examples:" in console.run("%%opencl?")
    finally:
        console.close()


def test_exit(console):
    console.type("exit")
    assert "Shutting down kernel" in console.expect(pexpect.EOF)
    console.terminal.wait()
    assert console.terminal.exitstatus == 0


def test_the_end_of_input_exits(console):
    console.terminal.sendeof()
    console.expect(r"exit \(\[y\]/n\)\?")
    console.terminal.sendline("y")
    assert "Shutting down kernel" in console.expect(pexpect.EOF)


def test_late_output_of_a_thread_on_enter(console, tmp_path):
    """Whatever comes after the cell is shown when the user presses Enter next."""
    go = tmp_path / "go"
    console.run("import os, threading, time; go = %r" % str(go))
    console.run("wait = lambda: [time.sleep(0.01) for _ in iter(lambda: os.path.exists(go), True)]")
    console.run("threading.Thread(target=lambda: (wait(), print('late ' + 'words'))).start()")
    go.touch()
    deadline = time.monotonic() + TIMEOUT
    shown = ""
    while "late words" not in shown:
        assert time.monotonic() < deadline
        console.terminal.sendline(" ")
        shown += console.prompt()


def test_a_cell_that_is_aborted(fresh, data_folder, tmp_path):
    """Another client's cell fails while the console's waits behind it."""
    console = Console(data_folder, kernel=("--existing", fresh.manager.connection_file))
    try:
        for attempt in range(20):  # the console's cell may come too late to be aborted
            go = tmp_path / ("go%d" % attempt)
            blocker = fresh.send("import os, time\nwhile not os.path.exists(%r): time.sleep(0.01)\n1/0" % str(go))
            fresh.started(blocker)
            console.type("print('not ' + 'aborted')")
            time.sleep(0.1 * (attempt + 1))
            go.touch()
            shown = console.prompt()
            fresh.finish(blocker)
            if "Aborted" in shown:
                break
        assert "Aborted" in shown and "not aborted" not in shown
        assert "still here" in console.run("print('still ' + 'here')")
    finally:
        console.close()
    assert fresh.run("1+1").result == "2"  # a console that did not start the kernel leaves it running


class Editor(Console):
    """The console with its line editor. It draws the prompt again with every key."""

    test_mode = False

    def prompt(self, number=1):
        return self.expect(r"In \[(?:\x1b\[[0-9;]*m)*%d(?:\x1b\[[0-9;]*m)*\]" % number)

    def enter(self, keys, number):
        """Press keys and Enter; what is shown until prompt `number`."""
        self.terminal.send(keys + "\r")
        return self.prompt(number)


@pytest.fixture
def editor(data_folder):
    opened = Editor(data_folder, "--ZMQTerminalInteractiveShell.display_completions=readlinelike")
    yield opened
    opened.close()


def test_the_line_editor(editor, tmp_path):
    editor.enter("alphabet_soup = 40", 2)
    assert "42" in editor.enter("alphabet_s\t + 2", 3)  # completed by the kernel

    (tmp_path / "loaded.py").write_text("loaded = alphabet_soup + 59")
    editor.enter("%%load %s" % (tmp_path / "loaded.py"), 4)
    editor.expect(r"\+ ?(?:\x1b\[[0-9;]*m)* ?(?:\x1b\[[0-9;]*m)*59")
    editor.enter("", 5)
    assert "99" in editor.enter("loaded", 6)

    editor.terminal.send("dropped = 1\x03")  # Ctrl-C at the prompt clears the line and nothing else
    assert "40" in editor.enter("alphabet_soup", 7)
    assert "NameError" in editor.enter("dropped", 8)

    editor.terminal.send("for i in range(2):\r")  # Enter asks the kernel whether that is all, and how far to indent
    editor.expect(r"\.\.\.: ")
    assert "round 1" in editor.enter("print('round', i)\r", 9)
