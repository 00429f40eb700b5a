"""A lease for coroutines: asked for in a thread, given up with the task that waits, held by a process in the end."""
import asyncio
import itertools
import threading
import time
import uuid

from drupe.hosted.client import Broker, BrokerError

PATIENCE = 20.0  # seconds in which a broker that restarts is back
PAUSE = 0.3  # seconds until it is asked again
AWAY = ("closed", "unreachable", "timeout")  # codes of a broker that may have done what it was asked for, or not


async def in_thread(function, *arguments):
    """Run what blocks in a thread of its own: a pool would fill with users who wait for devices."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def settle(result, error):
        if not done.done():
            done.set_exception(error) if error else done.set_result(result)

    def work():
        try:
            outcome = function(*arguments), None
        except Exception as error:
            outcome = None, error
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:
            pass  # the loop has ended meanwhile, and with it who asked

    threading.Thread(target=work, name="drupe-broker", daemon=True).start()
    return await done


class Session:
    """One lease: `position` and `ticket` while it waits, `lease` once it is there.

    The process that asks lives for long, and would hold what nobody knows of: a lease whose answer was lost when the
    broker was killed, or one that could not be returned. A thread ends these as soon as the broker answers.
    """

    def __init__(self, path=None):
        self.broker = Broker(path)
        self.lease = self.position = self._ticket = None
        self._key = uuid.uuid4().hex
        self._abandoned = False
        self._lock = threading.Lock()

    async def ask(self, waiting=None, **want):
        """Lease as Broker.lease() does. A task that is cancelled leaves the queue and keeps no lease."""
        try:
            await in_thread(self._ask, waiting, want)
        except asyncio.CancelledError:
            with self._lock:
                self._abandoned, ticket, there = True, self._ticket, self.lease is not None
            # The lease may be there, and the task have been cancelled before it ran again.
            give_up, arguments = (self._return, ()) if there else (self._abandon, (ticket,))
            threading.Thread(target=give_up, args=arguments, name="drupe-broker", daemon=True).start()
            raise
        return self.lease

    def _ask(self, waiting, want):
        def told(position, ticket):
            with self._lock:
                self.position, self._ticket, abandoned = position, ticket, self._abandoned
            if abandoned:
                raise BrokerError("nobody waits for this any more", "given-up")
            if waiting:
                waiting(position)

        try:
            lease = self.broker.lease(waiting=told, key=self._key, **want)
        except BrokerError as error:
            if self._ticket and self._abandoned:
                self._abandon(self._ticket)
            if error.code in AWAY:
                self._end_later()
            raise
        with self._lock:
            self.lease, self.position, self._ticket = lease, None, None
            abandoned = self._abandoned
        if abandoned:
            self._return()

    def _abandon(self, ticket):
        try:
            if ticket:
                self.broker.give_up(ticket)
        except BrokerError:
            pass  # the broker is gone, or has forgotten it

    def _return(self):
        """The error when the lease cannot be returned: mostly it has ended with its process."""
        with self._lock:
            lease, self.lease = self.lease, None
        try:
            if lease:
                self.broker.give_back(lease.id)
        except BrokerError as error:
            if error.code in AWAY:
                self._end_later()
            return error
        return None

    def _end_later(self):
        threading.Thread(target=self._end_all, name="drupe-broker", daemon=True).start()

    def _end_all(self):
        """End what came of this ask, as soon as there is a broker that can."""
        for pause in itertools.repeat(PAUSE):
            try:
                with Broker(self.broker.path) as broker:
                    broker.give_back(key=self._key)
                return
            except BrokerError as error:
                if error.code not in AWAY:
                    return
            time.sleep(pause)

    async def adopt(self, pid):
        """The process that holds the lease from now on; this one did until now. A broker that restarts is waited
        for: to ask it twice does no harm."""
        await in_thread(self._adopt, pid)

    def _adopt(self, pid):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.broker.adopt(self.lease.id, pid)
            except BrokerError as error:
                if error.code not in AWAY or time.monotonic() > end:
                    raise
            time.sleep(PAUSE)

    async def resume(self, waiting=None, timeout=None):
        """Look what the lease has now, which may be other devices; one that was parked waits for its turn."""
        try:
            self.lease = await in_thread(self._resume, waiting, timeout)
        except asyncio.CancelledError:
            self._end_later()
            raise
        return self.lease

    def _resume(self, waiting, timeout):
        def told(position, ticket):
            if waiting:
                waiting(position)

        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.broker.resume(self.lease.id, timeout, told)
            except BrokerError as error:
                if error.code not in ("closed", "unreachable") or time.monotonic() > end:
                    raise
            time.sleep(PAUSE)

    async def end(self):
        """Return the lease; the error when it had ended before."""
        error = await in_thread(self._return)
        self.broker.close()
        return error
