"""The peer of the soak of cells: a bare InteractiveShell that runs the same cells, in a process of its own.

python bare.py FOLDER COUNT SEED HISTORY WARM: prints its private bytes after WARM cells and at the end."""
import builtins
import contextlib
import os
import sys

import client
import mix

_NAMES = {"complete_request": "complete", "inspect_request": "inspect"}


def answer(shell, kind, content):
    if kind == "complete_request":
        shell.complete(None, content["code"], content["cursor_pos"])
    elif kind == "inspect_request":
        shell.object_inspect_mime("print")
    elif kind == "is_complete_request":
        shell.input_transformer_manager.check_complete(content["code"])
    elif kind == "history_request":
        list(shell.history_manager.get_tail(5, include_latest=True))


def main(folder, count, seed, history, warm):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    builtins.input = lambda prompt="": "typed"
    sizes, done = [], 0
    report = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    for step in mix.steps(count, seed, history):
        with contextlib.suppress(SystemExit):
            if step[0] == "cell":
                shell.run_cell(step[1], **step[2])
                done += 1
            elif step[0] == "ask":
                answer(shell, *step[1:])
        if step[0] == "cell" and done in (warm, count):
            sizes.append(client.memory(os.getpid()))
    report.write("%d %d\n" % (sizes[0], sizes[-1]))
    report.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1", int(sys.argv[5]))
