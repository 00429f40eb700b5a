"""sys.stdout and sys.stderr of the kernel: text files whose write() is C (_jkernel.Stream)."""
import contextlib
import io
import os
import sys
import time

from drupe import _jkernel

from . import parents

_FLUSH_PAUSE = 0.03  # seconds
_installed = []  # the buffers of both streams


class BinaryStream(io.BufferedIOBase):
    """`sys.stdout.buffer`: bytes are taken as UTF-8; a character cut in two by writes waits for its rest."""

    def __init__(self, text):
        self._text = text
        self._rest = b""

    @property
    def raw(self):
        return self

    @property
    def name(self):
        return self._text.name

    def write(self, data):
        size = memoryview(data).nbytes
        whole = self._rest + bytes(data)
        cut = len(whole) - _unfinished(whole)
        self._rest = whole[cut:]
        if cut:
            self._text._core.write(whole[:cut].decode("utf-8", "replace"))
        return size

    def finish(self):
        """Let go of half a character: its rest does not come any more."""
        if self._rest:
            rest, self._rest = self._rest, b""
            self._text._core.write(rest.decode("utf-8", "replace"))

    def flush(self):
        self.finish()
        self._text.flush()

    def writable(self):
        return True

    def fileno(self):
        return self._text.fileno()

    def isatty(self):
        return False

    def close(self):
        pass


def _unfinished(data):
    """How many bytes at the end begin a UTF-8 character without ending it."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < length else 0
    return 0


class OutStream(parents.Hooks, parents.Parented, io.TextIOBase):
    """A text file that writes into the cell which the caller works for. Closing it does nothing."""

    encoding = "utf-8"
    errors = "backslashreplace"
    mode = "w"
    line_buffering = True
    write_through = True
    flush_interval = _FLUSH_PAUSE
    echo = None

    def __init__(self, name, fd, server):
        self.name = name
        self._fd = fd
        self._server = server
        self._core = _jkernel.Stream(fd)
        self._flushed = 0.0
        self._master_pid = os.getpid()
        self.topic = b"stream." + name.strip("<>").encode()
        self.buffer = BinaryStream(self)
        self.write = self._core.write  # print() calls C without a Python frame between

    def flush(self):
        """See the text off. More often than every 30 ms this changes nothing: the text leaves by then anyway, and
        clients drop what comes as too many messages."""
        _jkernel.flush_stdio()
        now = time.monotonic()
        if now - self._flushed >= _FLUSH_PAUSE:
            self._flushed = now
            self._server.flush()

    def register_hook(self, hook):
        super().register_hook(hook)
        self.write = self._write_through_hooks

    def _write_through_hooks(self, text):
        if self._hooks and not getattr(self._local, "inside", False):  # what a hook prints passes no hook
            from .facade import Session

            content = {"name": self.name.strip("<>"), "text": text}
            self._local.inside = True
            try:
                message = self._through_hooks(Session(self._server).msg("stream", content, parents.current_message()))
            finally:
                self._local.inside = False
            text = "" if message is None else message["content"]["text"]
        return self._core.write(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def writable(self):
        return True

    def isatty(self):
        return False

    def fileno(self):
        """The captured descriptor: a subprocess given this file writes into the cell too."""
        return self._fd

    def _is_master_process(self):
        """Whether this is the kernel, and no child that it forked."""
        return os.getpid() == self._master_pid

    def reconfigure(self, **options):
        """Accepted for programs that ask every text file for UTF-8; nothing changes."""

    def close(self):
        pass


class _Through(io.BufferedWriter):
    """Keeps nothing back. From Python 3.14 on the write_through of a text file ends at its buffer."""

    def write(self, data):
        count = super().write(data)
        self.flush()
        return count


def _original(file):
    """The same file in order with what its descriptor gets otherwise."""
    if file is None:
        return None
    file.flush()
    raw = io.FileIO(file.fileno(), "w", closefd=False)
    raw.name = file.name
    return io.TextIOWrapper(_Through(raw), file.encoding, file.errors, newline="\n", write_through=True)


def install(server):
    """Put both streams in place of the interpreter's; the originals stay reachable as sys.__stdout__."""
    sys.__stdout__, sys.__stderr__ = _original(sys.__stdout__), _original(sys.__stderr__)
    _jkernel.line_buffer_stdio()
    sys.stdout = OutStream("<stdout>", 1, server)
    sys.stderr = OutStream("<stderr>", 2, server)
    _installed.extend((sys.stdout.buffer, sys.stderr.buffer))


def flush_others():
    """What a program has put in place of our streams, and forgotten there, may hold text of the cell."""
    for file in (sys.stdout, sys.stderr):
        if not isinstance(file, OutStream):
            with contextlib.suppress(Exception):
                file.flush()


def finish():
    """At the end of a cell: nothing of its text stays behind."""
    for buffer in _installed:
        buffer.finish()
    _jkernel.flush_stdio()
