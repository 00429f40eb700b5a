"""The debugger's thread: debug_request in, debug_reply and debug_event out, debugpy between.

It runs beside the cells and is never traced, so it answers while they are stopped. Requests of the Debug Adapter
Protocol are passed on to debugpy with numbers of our own, and their responses passed back as they come; what Jupyter
adds to the protocol, and what concerns cells and not a program, is answered here.
"""
import os
import select
import signal
import sys
import threading
import time

from IPython import get_ipython
from IPython.core.inputtransformer2 import leading_empty_lines

from drupe import _jkernel

from . import debug_adapter, debug_variables, jsontext
from .cell import SEED, file_name, folder
from .debug_adapter import AdapterError

_SUFFIX = ".py"
_TRIES = 50
_PAUSE = 0.02  # seconds
_UNTRACED = "Debugging will be disabled for this thread"
_RESUMING = ("continue", "next", "stepIn", "stepOut", "goto", "disconnect")
_GROUPS = ("special variables", "function variables", "class variables", "protected variables")
_OWN_FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "__main__.py")


def serve(subshell):
    """Answer debug requests, which come in a subshell of their own, until the kernel closes."""
    thread = threading.current_thread()
    thread.name = "drupe.debugger"
    hide(thread)
    Debugger(get_ipython()).run(subshell)


def hide(thread):
    """Keep a thread of the kernel's out of the debugger: not traced, not listed, not stopped."""
    thread.pydev_do_not_trace = thread.is_pydev_daemon_thread = True


def _rules(modules):
    """What runs below the cells and between their statements is not stepped into, and its exceptions do not stop: the
    kernel itself, its magics, and the modules that it had imported before the first cell."""
    names = {name.partition(".")[0] for name in modules} - {"__main__", "drupe"} | {"drupe.jupyter", "drupe.magics"}
    return [{"module": name, "include": False} for name in sorted(names)] + [{"path": _OWN_FILE, "include": False}]


class Call:
    """One debug_request until it is replied to."""

    def __init__(self, debugger, request):
        self._debugger = debugger
        self._request = request
        self.parent = request.parent
        message = jsontext.loads(request.content)
        self.command = message.get("command")
        self.seq = message.get("seq", 0)
        self.tries = 0
        arguments = message.get("arguments")
        self.arguments = arguments if isinstance(arguments, dict) else {}

    def reply(self, body=None, success=True, message=None):
        response = {
            "type": "response",
            "seq": self._debugger.number(),
            "request_seq": self.seq,
            "success": success,
            "command": self.command,
            "body": {} if body is None else body,
        }
        if message is not None:
            response["message"] = message
        self._request.reply(jsontext.dumps(response))

    def fail(self, message):
        self.reply(success=False, message=message)

    def pass_back(self, response):
        """Reply with what debugpy has responded."""
        self.reply(response.get("body"), bool(response.get("success")), response.get("message"))


class Debugger:
    """The state of debugging, and its commands: methods named do_COMMAND."""

    def __init__(self, shell):
        self._shell = shell
        self._server = shell.server
        self._folder = folder()
        self._folder_made = False
        self._adapter = None
        self._parent = None  # of the last debug_request: events belong to it
        self._numbers = 0
        self._waiting = {}  # number of a request to debugpy -> what to call with its response
        self._breakpoints = {}
        self._stopped = []  # ids of threads, the one that stopped last first
        self._resuming = False  # a request that lets threads go on is on its way
        self._all_may_run = False  # Ctrl-C
        self._scopes = set()  # references of scopes, since the last stop
        self._tree = debug_variables.Tree()
        self._transforms = []

    def number(self):
        self._numbers += 1
        return self._numbers

    # --- the loop ---

    def run(self, subshell):
        """Serve until the kernel closes."""
        self._subshell = subshell
        self._descriptor = descriptor = subshell.fileno()
        try:
            while True:
                wait = [descriptor] if self._adapter is None else [descriptor, self._adapter]
                ready = select.select(wait, (), ())[0]
                if self._adapter is not None and self._adapter in ready:
                    self._receive()
                if descriptor in ready and not self._take():
                    return
                if self._all_may_run:
                    self._all_may_run = False
                    if self._stopped:
                        self._run_all()
        finally:
            self._close()

    def _take(self):
        """Answer what is queued. False when the kernel closes."""
        while True:
            request = self._subshell.dispatch()
            if request is None:
                return not self._subshell.ended
            call = Call(self, request)
            self._parent = call.parent
            _jkernel.cell.set(call.parent)
            self._guard(call, self._answer)

    def _guard(self, call, function, *args):
        """Whatever goes wrong becomes a reply."""
        try:
            function(call, *args)
        except BaseException as error:
            try:
                call.fail(str(error) if isinstance(error, AdapterError) else "%s: %s" % (type(error).__name__, error))
            except ValueError:
                pass  # it was replied to before the error

    def _answer(self, call):
        command = call.command
        own = getattr(self, "do_" + command, None) if isinstance(command, str) and command.isidentifier() else None
        if own is not None:
            own(call)
        elif self._adapter is None:
            call.fail("the debugger is not started: send initialize and attach first")
        else:
            self._forward(call)

    def _forward(self, call, arguments=None, then=None, command=None):
        """Pass a request on; `then(call, response)` instead of passing the response back."""
        if self._adapter is None:
            call.fail("the debugger is not started: send initialize and attach first")
            return
        arguments = call.arguments if arguments is None else arguments
        self._resuming = self._resuming or call.command in _RESUMING
        number = self._adapter.send(command or call.command, arguments)
        self._waiting[number] = (call, then or Call.pass_back)

    # --- what debugpy says ---

    def _receive(self):
        try:
            messages = self._adapter.receive()
        except (OSError, EOFError, ValueError) as error:
            self._lost(error)
            return
        for message in messages:
            if message.get("type") == "response":
                call, then = self._waiting.pop(message.get("request_seq"), (None, None))
                if call is not None:
                    self._guard(call, lambda call: then(call, message))
            elif message.get("type") == "event":
                self._event(message.get("event"), message.get("body") or {})

    def _event(self, name, body):
        thread = body.get("threadId")
        if name == "stopped":
            self._stopped = [thread] + [other for other in self._stopped if other != thread]
            self._scopes.clear()
            self._resuming = False
        elif name == "continued":
            everything = body.get("allThreadsContinued", True)
            self._stopped = [] if everything else [other for other in self._stopped if other != thread]
            if not self._resuming:
                self._run_all()  # an exception has broken one stop: end the others
            else:
                self._resuming = False
        elif name == "output" and _UNTRACED in body.get("output", ""):
            return  # the next cell is traced again
        elif name == "thread" and body.get("reason") == "exited" and thread in self._stopped:
            self._stopped.remove(thread)
        self._publish(name, body)

    def _publish(self, name, body):
        event = {"type": "event", "seq": self.number(), "event": name, "body": body}
        self._server.publish(self._parent, "debug_event", jsontext.dumps(event))

    def _lost(self, error):
        """debugpy has gone: a cell has stopped it."""
        waiting, self._waiting = self._waiting, {}
        self._stop()
        for call, _ in waiting.values():
            call.fail("debugpy has ended: %s" % error)
        self._publish("terminated", {})

    # --- sessions ---

    def do_initialize(self, call):
        if self._adapter is None:
            self._start()
        self._forward(call)

    def _start(self):
        for thread in threading.enumerate():
            if type(thread).__module__ == "IPython.core.history":
                hide(thread)
        self._adapter = debug_adapter.Adapter()
        # Blank lines above a cell's code count, or every breakpoint would be off by them.
        transforms = self._shell.input_transformer_manager.cleanup_transforms
        if leading_empty_lines in transforms:
            at = transforms.index(leading_empty_lines)
            self._transforms.append((at, transforms.pop(at)))
        self._shell.events.register("pre_run_cell", self._before_cell)
        self._shell.interrupts.debugger = self._interrupted

    def _interrupted(self):
        """In the signal handler, on the main thread."""
        adapter = self._adapter
        if adapter is not None:
            adapter.release_caller()
            self._all_may_run = True
            os.eventfd_write(self._descriptor, 1)

    def _run_all(self):
        self._resuming = True
        self._adapter.send("continue", {"threadId": 1})

    def _before_cell(self, info):
        """In the cell's thread: an interrupt at a breakpoint ends its tracing, and debugpy cannot start it in another
        thread on every machine."""
        adapter = self._adapter
        if adapter is not None:
            adapter.trace_caller()
            return
        debug_adapter.untrace_caller()
        if threading.current_thread() is threading.main_thread():
            self._shell.events.unregister("pre_run_cell", self._before_cell)

    def _stop(self):
        adapter, self._adapter = self._adapter, None
        self._shell.interrupts.debugger = None
        self._stopped = []
        self._breakpoints = {}
        while self._transforms:
            self._shell.input_transformer_manager.cleanup_transforms.insert(*self._transforms.pop())
        if adapter is not None:
            adapter.close()

    def do_attach(self, call):
        arguments = dict(call.arguments)
        kernel = self._shell.kernel
        arguments.setdefault("justMyCode", kernel.debug_just_my_code)  # True: a breakpoint in a library never stops
        if kernel.filter_internal_frames:
            arguments["rules"] = list(arguments.get("rules") or ()) + _rules(self._shell.modules_at_start)
        self._forward(call, arguments, self._attached)

    def _attached(self, call, response):
        """Front-ends wait for the reply to attach before they send configurationDone; debugpy needs it now."""
        if not response.get("success"):
            call.pass_back(response)
            return
        self._forward(call, {}, lambda call, done: call.pass_back(response), "configurationDone")

    def do_configurationDone(self, call):
        if self._adapter is None:
            call.fail("the debugger is not started: send initialize and attach first")
        else:
            call.reply()

    def do_disconnect(self, call):
        if self._adapter is None:
            call.reply()
            return
        # The kernel goes on, whatever the front-end wishes for a program.
        self._forward(call, {"terminateDebuggee": False}, self._disconnected)

    def _disconnected(self, call, response):
        self._stop()
        call.pass_back(response)

    def do_terminate(self, call):
        """End what is debugged: the cell, not the kernel."""
        if self._adapter is None:
            call.fail("the debugger is not started: send initialize and attach first")
            return
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        call.reply()

    def _close(self):
        """The kernel closes: leave nothing behind, wait for nothing."""
        if self._adapter is not None:
            self._adapter.close(quickly=True)
        if self._folder_made:
            for name in os.listdir(self._folder):
                os.unlink(os.path.join(self._folder, name))
            os.rmdir(self._folder)

    # --- cells and sources ---

    def do_debugInfo(self, call):
        call.reply({
            "isStarted": self._adapter is not None,
            "hashMethod": "Murmur2",
            "hashSeed": SEED,
            "tmpFilePrefix": self._folder,
            "tmpFileSuffix": _SUFFIX,
            "breakpoints": [{"source": path, "breakpoints": points} for path, points in self._breakpoints.items()],
            "stoppedThreads": self._stopped,
            "richRendering": True,
            "exceptionPaths": [],
            "copyToGlobals": True,
        })

    def do_dumpCell(self, call):
        code = jsontext.well_formed(call.arguments["code"])
        path = file_name(code)
        if path.startswith(self._folder):  # another name may be that of a file with something else in it
            if not self._folder_made:
                os.mkdir(self._folder, 0o700)
                self._folder_made = True
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(code)
        call.reply({"sourcePath": path})

    def do_source(self, call):
        source = call.arguments.get("source") or {}
        path = source.get("path")
        if not path or not os.path.isfile(path):
            self._source_elsewhere(call, path)
            return
        import tokenize

        with tokenize.open(path) as file:  # in the encoding that the file declares
            call.reply({"content": file.read()})

    def _source_elsewhere(self, call, path):
        import linecache

        entry = linecache.cache.get(path)
        if entry is not None and len(entry) == 4:
            call.reply({"content": "".join(entry[2])})  # a cell that was never dumped
        elif self._adapter is not None and call.arguments.get("sourceReference"):
            self._forward(call)
        else:
            call.fail("there is no source file %s" % path)

    def do_setBreakpoints(self, call):
        self._forward(call, then=self._breakpoints_set)

    def _breakpoints_set(self, call, response):
        path = (call.arguments.get("source") or {}).get("path")
        if response.get("success") and path is not None:
            asked = call.arguments.get("breakpoints") or []
            found = (response.get("body") or {}).get("breakpoints") or []
            # debugpy may move a breakpoint to the next line with code.
            points = [{**one, "line": other.get("line", one.get("line"))} for one, other in zip(asked, found)]
            self._breakpoints.pop(path, None)
            if points:
                self._breakpoints[path] = points
        call.pass_back(response)

    def do_modules(self, call):
        modules = [(name, module) for name, module in list(sys.modules.items()) if module is not None]
        start = call.arguments.get("startModule", 0)
        count = call.arguments.get("moduleCount") or len(modules)
        found = []
        for at, (name, module) in list(enumerate(modules))[start:start + count]:
            path = getattr(getattr(module, "__spec__", None), "origin", None)
            if isinstance(path, str) and path.endswith(".py"):
                found.append({"id": at, "name": name, "path": path})
        call.reply({"modules": found, "totalModules": len(modules)})

    # --- running on ---

    def do_pause(self, call):
        thread = call.arguments.get("threadId")
        self._forward(call, {}, lambda call, response: self._pause(call, thread, response), "threads")

    def _pause(self, call, wanted, response):
        """Front-ends that know no thread yet name 1."""
        threads = (response.get("body") or {}).get("threads") or []
        known = [thread["id"] for thread in threads]
        main = [thread["id"] for thread in threads if thread.get("name") == "MainThread"]
        thread = wanted if wanted in known else (main or known or [wanted])[0]
        self._forward(call, {"threadId": thread})

    def _of_stopped(self, call, then=None):
        arguments = dict(call.arguments)
        if self._stopped and arguments.get("threadId") not in self._stopped:
            arguments["threadId"] = self._stopped[0]
        self._forward(call, arguments, then)

    do_next = do_stepIn = do_stepOut = _of_stopped

    def do_stackTrace(self, call):
        self._of_stopped(call, self._frames_known)

    def _frames_known(self, call, response):
        """Python is at line 0 before the first statement of a cell; front-ends count from 1."""
        frames = (response.get("body") or {}).get("stackFrames") or []
        if not frames and self._stopped and call.tries < _TRIES:
            call.tries += 1  # debugpy announces a stop before it knows the frames
            time.sleep(_PAUSE)
            self.do_stackTrace(call)
            return
        for frame in frames:
            frame["line"] = max(1, frame.get("line", 1))
        call.pass_back(response)

    def do_continue(self, call):
        if self._stopped or self._adapter is None:
            self._forward(call)
        else:
            call.reply({"allThreadsContinued": True})  # debugpy would reply when something stops and goes on

    # --- variables ---

    def do_scopes(self, call):
        self._forward(call, then=self._scopes_known)

    def _scopes_known(self, call, response):
        for scope in (response.get("body") or {}).get("scopes") or []:
            self._scopes.add(scope.get("variablesReference"))
        call.pass_back(response)

    def do_variables(self, call):
        reference = call.arguments.get("variablesReference", 0)
        if reference < debug_variables.FIRST_REFERENCE:
            self._forward(call, then=self._variables_known)
            return
        start, count = call.arguments.get("start") or 0, call.arguments.get("count") or 0
        children = self._tree.children(reference, start, count)
        if children is None:
            call.fail("this variable belongs to an earlier inspectVariables")
        else:
            call.reply({"variables": children})

    def _variables_known(self, call, response):
        body = response.get("body") or {}
        if call.arguments.get("variablesReference") in self._scopes:
            variables = body.get("variables") or []
            body["variables"] = [each for each in variables if not debug_variables.hidden(self._shell, each["name"])]
        call.pass_back(response)

    def do_inspectVariables(self, call):
        self._tree = debug_variables.Tree()
        call.reply({"variables": self._tree.globals(self._shell)})

    def do_richInspectVariables(self, call):
        """The mime bundle of an expression. One that fails is shown as its error: front-ends keep asking for variables
        that are gone, and take a refusal for a defect."""
        expression, frame = call.arguments.get("variableName"), call.arguments.get("frameId")
        if not isinstance(expression, str) or expression in _GROUPS:
            call.reply({"data": {}, "metadata": {}})
            return
        try:
            code = compile(expression.strip(), "<variable>", "eval")
            if frame is None or not self._stopped:
                call.reply(debug_variables.rich(self._shell, eval(code, self._shell.user_ns)))
                return
        except Exception as error:
            call.reply(debug_variables.failure("%s: %s" % (type(error).__name__, error)))
            return
        # Inside another expression: compile() has seen that it is a whole one.
        text = "__import__('drupe.jupyter.debug_variables', fromlist=['*']).rich_text((%s))" % expression.strip()
        arguments = {"expression": text, "frameId": frame, "context": "clipboard"}
        self._forward(call, arguments, self._rich_known, "evaluate")

    def _rich_known(self, call, response):
        if response.get("success"):
            call.reply(debug_variables.rich_of_text(response["body"]["result"]))
        else:
            call.reply(debug_variables.failure(str(response.get("message")).strip().rpartition("\n")[2]))

    def do_copyToGlobals(self, call):
        source, target = call.arguments.get("srcVariableName"), call.arguments.get("dstVariableName")
        if not all(isinstance(name, str) and name.isidentifier() for name in (source, target)):
            call.fail("copyToGlobals needs the names of two variables")
            return
        expression = "__import__('IPython').get_ipython().user_ns[%r]" % target
        arguments = {"expression": expression, "value": source, "frameId": call.arguments.get("srcFrameId")}
        self._forward(call, arguments, command="setExpression")

    def do_evaluate(self, call):
        if call.arguments.get("frameId") is not None:
            self._forward(call)
            return
        value = eval(call.arguments["expression"], self._shell.user_ns)
        variable = {"result": debug_variables.text_of(value), "type": type(value).__name__, "variablesReference": 0}
        call.reply(variable)
