"""`!command`: a shell on a terminal of its own, whose output is the cell's.

IPython's own function does this as well, but an interrupt that finds it starting the shell, or before the first output,
leaves descriptors open and fails in another way than by KeyboardInterrupt.
"""
import codecs
import os
import sys

import pexpect

from .interrupt import whole

_CHUNK = 65536  # bytes
_LOOK = 0.2  # seconds between two looks for interrupts, for cells in threads that no signal wakes
_GRACE = 0.2  # seconds for an interrupted command to say its last words


def run(command):
    """Run `command` to its end; an interrupt ends it and is raised again.

    Returns the exit status, negative if a signal ended the command."""
    children = []
    try:
        _start(command, children)
        _relay(children[0], None)
        children[0].wait()
    except BaseException:
        for child in children:
            _end(child)
        raise
    (child,) = children
    child.close()
    status = child.exitstatus
    if status is None:
        return -(child.signalstatus or 0)
    return status if status <= 128 else 128 - status  # shells say 128 + n for a signal


@whole
def _start(command, children):
    shell = pexpect.which(os.environ.get("SHELL") or "sh") or "/bin/sh"
    children.append(pexpect.spawn(shell, ["-c", command], timeout=None))


def _relay(child, patience):
    """Print what the command writes until it ends, or says nothing for `patience` seconds."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        try:
            data = child.read_nonblocking(_CHUNK, _LOOK if patience is None else patience)
        except pexpect.TIMEOUT:
            if patience is not None:
                break
            continue
        except pexpect.EOF:
            break
        sys.stdout.write(decoder.decode(data))
    sys.stdout.write(decoder.decode(b"", True))


def _end(child):
    """Ctrl-C for the command, then the end of it, whatever it does about that."""
    try:
        child.sendintr()
        _relay(child, _GRACE)
    except (OSError, KeyboardInterrupt):
        pass
    finally:
        child.close(force=True)
