"""os._exit() says in the cell that it ends the process, and lets the text before it out. exit() of C says so itself."""
import functools
import os

from drupe import _jkernel

_original = os._exit


@functools.wraps(_original)
def _exit(status):
    _jkernel.leaving(status)  # comes back in a forked child, and where the kernel ends anyway
    _original(status)


def install():
    os._exit = _exit
