"""One session's random life: it waits for a device, computes, idles, crashes, is restarted, and leaves."""
import ast
import asyncio
import contextlib
import os
import queue
import random
import signal
import time

from hosted_world import HOUR, alive
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

WAIT = 90.0  # seconds after which nobody should wait any more
PROFILES = ("gpu", "gpu", "two-gpus", "processor", "half", "half", "quarter", "share", "share", "large", "timed")
ACTIONS = {"compute": 6, "host": 2, "rest": 2, "sleep": 4, "interrupt": 2, "crash": 1, "restart": 2, "extend": 1}
AWAY = ("cannot reach", "closed the connection", "did not answer", "takes no requests", "cannot hold its lease")

# A part that two kernels use at a time is locked twice. A timed lease may end in the middle of a cell: that locks
# nothing.
SETUP = """import contextlib, fcntl, os, time
import drupe.array as da
@contextlib.contextmanager
def use(seconds):
    with contextlib.ExitStack() as stack:
        for name in os.environ["SOAK_USE"].split(",") * {locks}:
            file = stack.enter_context(open({folder!r} + "/" + name, "r+"))
            how = fcntl.LOCK_SH if "DRUPE_MEMORY_LIMIT" in os.environ else fcntl.LOCK_EX
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RuntimeError("DOUBLED: " + name)
        yield
        time.sleep(seconds)
base = da.arange({size}, dtype="int64", device="host") + {add}
x = base + 0
it = [int(base.sum()), 0, os.environ["SOAK_USE"], os.environ["DRUPE_LEASE"]]"""
COMPUTE = """with use({seconds}):
    it = [int(base.sum()), int(x.sum()), os.environ["SOAK_USE"], os.environ["DRUPE_LEASE"]]
    x = base + {add}
    x.queue.wait()"""
CRASHES = ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "import os, signal\nos.kill(os.getpid(), 9)",
           "import os\nos._exit(3)")


class Died(Exception):
    """The kernel has ended without being asked to."""


class Wrong(Exception):
    """What must not happen."""


class Life:
    """The session `number`; say(number, event, ...) tells of it."""

    def __init__(self, number, options, say):
        self.number, self.options = number, options
        self.say = lambda event, **more: say(number, event, **more)
        self.rng = random.Random(f"{options['seed']}/{number}")
        self.profile = self.rng.choice(PROFILES)
        self.stays = self.rng.random() < 0.4  # its kernel outlives the hub
        self.size, self.add = self.rng.randrange(1000, 200000), self.rng.randrange(1000)
        self.last = 0  # what was added to x; None: not known
        self.wake = asyncio.Event()
        self.manager = self.client = self.pid = None
        self.managers = 0
        self.over = self.asked = False  # asked: by the last restart
        self.interrupted = False  # a request to interrupt is on its way: it may come after the cell that it was for

    # --- Its kernel --------------------------------------------------------------------------------------------

    def _manager(self):
        # A manager that is forgotten removes its file.
        self.managers += 1
        self.connection = f"{self.options['folder']}/s{self.number}-{self.options['life']}-{self.managers}.json"
        specs = KernelSpecManager(kernel_dirs=[self.options["specs"]])
        return AsyncKernelManager(kernel_name=self.profile, kernel_spec_manager=specs, transport="ipc",
                                  ip=self.connection[:-5], connection_file=self.connection)

    async def _start(self, restart=None):
        """Start or restart the kernel. A broker that is away is asked again."""
        end = time.monotonic() + WAIT
        while True:
            self.say("asks", profile=self.profile)
            try:
                if restart is None:
                    self.manager = self._manager()
                    await self.manager.start_kernel(independent=self.stays)
                else:
                    self.asked, self.interrupted = not restart, True
                    await self.manager.restart_kernel(now=restart)
                break
            except RuntimeError as error:
                if not any(words in str(error) for words in AWAY) or time.monotonic() > end:
                    raise Wrong(str(error)) from error
                self.say("refused", why=str(error))
            restart, self.asked = None, False
            await asyncio.sleep(0.3)
        self.pid = self.manager.provisioner.pid
        self._connect(self.manager.client())
        await self._setup()

    def _connect(self, client):
        if self.client is not None:
            self.client.stop_channels()
        self.client = client
        client.start_channels(shell=True, iopub=False, stdin=False, hb=False, control=self.manager is None)

    async def _setup(self):
        self.last = None
        while (reply := await self._first_cell()).get("ename") == "KeyboardInterrupt" and self.interrupted:
            self.interrupted = False
        if self._expect(reply, "the first cell"):
            self.last, self.asked = 0, False
            self.say("ready", pid=self.pid, lease=self.lease, profile=self.profile, connection=self.connection,
                     stays=self.stays, size=self.size, add=self.add)

    async def _first_cell(self):
        return await self._cell(SETUP.format(folder=self.options["locks"], size=self.size, add=self.add,
                                             locks=int(self.profile != "timed")))

    async def _cell(self, code, limit=WAIT):
        """The content of its reply. What comes right behind a cell that was interrupted is aborted with it."""
        for _ in range(4):
            self.say("cell", code=code[:30].replace("\n", "; "))
            self.sent = self.client.execute(code, user_expressions={"it": "it"}, store_history=False,
                                            allow_stdin=False)
            reply = await self._reply(limit)
            if reply["status"] != "aborted":
                break
        return reply

    async def _reply(self, limit=WAIT):
        end = time.monotonic() + limit
        while True:
            try:
                message = await self.client.get_shell_msg(timeout=0.3)
            except queue.Empty:
                if not alive(self.pid):
                    raise Died from None
                if time.monotonic() > end:
                    raise Wrong(f"a cell of kernel {self.pid} had no answer within {limit:g} s") from None
                continue
            if message["parent_header"].get("msg_id") == self.sent:
                self.say("reply")
                return message["content"]

    def _expect(self, reply, what):
        """Compare what a cell has computed; False when it has lost its device as it may."""
        name = reply.get("ename")
        if name == "LeaseEnded" and self.profile == "timed":
            self.over = True
            self.say("ended")
            return False
        if name == "DeviceMoved":
            self.say("moved")
            return False
        if name == "KeyboardInterrupt" and self.interrupted:
            self.last, self.interrupted = None, False
            return False
        if reply["status"] != "ok":
            raise Wrong(f"{what} of kernel {self.pid} failed: {name}: {reply.get('evalue')}")
        base, x, use, self.lease = ast.literal_eval(reply["user_expressions"]["it"]["data"]["text/plain"])
        sum_of_base = self.size * (self.size - 1) // 2 + self.size * self.add
        if base != sum_of_base or (self.last is not None and x != sum_of_base + self.size * self.last):
            raise Wrong(f"{what} of kernel {self.pid} computed {base} and {x}, not {sum_of_base} and more by "
                        f"{self.size} * {self.last}")
        self.say("used", lease=self.lease, use=use)
        return True

    # --- What it does ------------------------------------------------------------------------------------------

    async def run(self, left=None):
        """Live. `left`: what is known of a kernel that is there."""
        try:
            try:
                await (self._begin() if left is None else self._take(left))
                await self._live()
            except Died:
                await self._tell_death()
                if self.manager is not None and self.rng.random() < 0.5:
                    self.say("restarts")
                    await self._start(restart=True)
                    await self._compute()
        except Died:
            await self._tell_death()
        except asyncio.TimeoutError:
            self.say("gave up")
        except Exception as error:
            self.say("wrong", text=f"{type(error).__name__}: {error}"[:1000])
        await self._leave()
        self.say("left")

    async def _begin(self):
        await asyncio.sleep(self.rng.random())
        if self.rng.random() < 0.1:  # its user does not wait for long
            await asyncio.wait_for(self._start(), self.rng.uniform(0.1, 2))
        else:
            await self._start()

    async def _take(self, left):
        client = AsyncKernelClient(connection_file=left["connection"])
        client.load_connection_file()
        self.pid, self.connection, self.last = left["pid"], left["connection"], None
        self._connect(client)
        await self._compute()
        self.say("ready", pid=self.pid, lease=self.lease, profile=self.profile, connection=self.connection, stays=True,
                 size=self.size, add=self.add)

    async def _live(self):
        for _ in range(self.rng.randrange(2, 7)):
            if self.over:
                return
            action = self.rng.choices(list(ACTIONS), ACTIONS.values())[0]
            if self.manager is not None or action not in ("restart", "crash", "interrupt"):
                await getattr(self, "_" + action)()
        if not self.over:
            await self._compute()

    async def _compute(self):
        for attempt in range(6):
            add = self.rng.randrange(1000)
            reply = await self._cell(COMPUTE.format(seconds=self.rng.choice((0, 0.1, 0.5)), add=add))
            if self._expect(reply, "a cell"):
                self.last = add
                return
            if self.over:
                return
            await asyncio.sleep(0.5 * attempt)  # the old device may become free again
        if self.manager is None:
            self.over = True
        else:
            await self._restart()

    async def _host(self):
        """A cell that needs no device does not wait for one."""
        number = self.rng.randrange(1000)
        reply = await self._cell(f"it = {number} + 1", limit=30)
        if reply.get("ename") == "KeyboardInterrupt" and self.interrupted:
            self.interrupted = False
            return
        value = reply.get("user_expressions", {}).get("it", {}).get("data", {}).get("text/plain")
        if value != str(number + 1):
            raise Wrong(f"a cell without devices brought {reply}")

    async def _rest(self):
        await self._quiet(self.rng.uniform(0, 10 * HOUR / 60))

    async def _sleep(self):
        """Until the device was given away, or nobody wants it."""
        await self._quiet(None)
        await self._compute()

    async def _quiet(self, seconds):
        self.wake.clear()
        self.say("quiet", until="wake" if seconds is None else f"{seconds:.1f}")
        with contextlib.suppress(asyncio.TimeoutError):
            end = time.monotonic() + (2 * WAIT if seconds is None else seconds)
            while time.monotonic() < end and alive(self.pid):
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self.wake.wait(), min(0.5, max(0.01, end - time.monotonic())))
                    break
        self.say("wakes")

    async def _interrupt(self):
        """Ctrl-C while a cell computes, or waits for its device."""
        add = self.rng.randrange(1000)
        code = COMPUTE.format(seconds=0.5, add=add)
        self.say("cell", code="interrupted")
        self.sent = self.client.execute(code, user_expressions={"it": "it"}, store_history=False, allow_stdin=False)
        await asyncio.sleep(self.rng.uniform(0, 1))
        self.interrupted = True
        await self.manager.interrupt_kernel()
        reply = await self._reply()
        before, self.last = self.last, None
        if reply.get("ename") != "KeyboardInterrupt":
            self.last = before
            self.last = add if self._expect(reply, "an interrupted cell") else None
            return
        self.interrupted = False
        if self.rng.random() < 0.5:
            await self._quiet(None)

    async def _crash(self):
        self.say("crashes", pid=self.pid)
        try:
            await self._cell(self.rng.choice(CRASHES))
        except Died:
            self.say("restarts", pid=self.pid)
            await self._start(restart=True)
            return
        raise Wrong("a kernel survived its crash")

    async def _restart(self):
        self.say("restarts", pid=self.pid)
        await self._start(restart=self.rng.random() < 0.5)

    async def _extend(self):
        reply = await self._cell(f"import drupe.hosted\ntry:\n    drupe.hosted.extend({HOUR})\n"
                                 "except drupe.hosted.BrokerError:\n    pass\nit = 1")
        if reply["status"] != "ok" and reply.get("ename") not in ("LeaseEnded", "DeviceMoved", "KeyboardInterrupt"):
            raise Wrong(f"extend() failed: {reply.get('ename')}: {reply.get('evalue')}")

    # --- Its end -----------------------------------------------------------------------------------------------

    async def _leave(self):
        self.say("leaves", pid=self.pid)
        how = self.rng.choice(("in order", "now", "killed"))
        if self.manager is not None and self.manager.has_kernel:
            self.pid = self.manager.provisioner.pid
        try:
            if self.client is not None and self.manager is None and how == "in order":
                self.client.shutdown()
                await self._gone()
            elif self.manager is not None and self.manager.has_kernel and how != "killed":
                await self.manager.shutdown_kernel(now=how == "now")
        except Exception as error:
            self.say("wrong", text=f"leaving: {type(error).__name__}: {error}"[:1000])
        if self.pid is not None and alive(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        if self.manager is not None and self.manager.provisioner is not None and self.manager.has_kernel:
            await self.manager.provisioner.wait()  # its process: the manager is forgotten, as that of a lost server is
        if self.client is not None:
            self.client.stop_channels()

    async def _tell_death(self):
        """With its exit status, if this hub is its parent. jupyter_client's shutdown_request to a kernel that has died
        waits in its socket for 0.1 s, and a new kernel may be that fast: it ends in order then."""
        status = None
        if self.manager is not None and self.manager.has_kernel:
            status = await self.manager.provisioner.poll()
        self.say("died", pid=self.pid, status=status, asked=self.asked and status == 0)

    async def _gone(self):
        for _ in range(100):
            if not alive(self.pid):
                return
            await asyncio.sleep(0.1)
