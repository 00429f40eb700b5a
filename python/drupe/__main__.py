"""python -m drupe: start the kernel, or run a command. Imports next to nothing before the sockets answer."""
import gc
import sys

USAGE = """\
usage: python -m drupe COMMAND

  install [--user | --sys-prefix | --prefix PATH] [--name NAME] [--executable [PATH]]
             make JupyterLab and other clients find the kernel
               --user         for your user (the default)
               --sys-prefix   in this Python environment
               --prefix PATH  under PATH/share/jupyter
               --name NAME    under another name than drupe
               --executable   naming the program drupe-kernel instead of python -m drupe
  devices [FILTER] [--long | --json | --platforms]
             the devices of this machine, for instance: devices gpu
  cache [list | clear]
             the programs that were built and kept
  doctor     why a device is not found, and which package to install
  -f CONNECTION_FILE
             start the kernel, as clients do
  --include-dir, --includes
             the folder of drupe/ext.h, alone or as a compiler's option
  --version  the version

Drupe is a Jupyter kernel with devices: in a notebook or in any Python, `import drupe`. The environment variable
DRUPE_DEVICES limits the devices, for instance DRUPE_DEVICES="host:*;opencl:gpu"."""


# Each a function of the arguments behind the command, which gives the exit code.
COMMANDS = {"cache": "drupe.program:cache_command", "devices": "drupe.listing:main", "doctor": "drupe.doctor:main",
            "install": "drupe.kernel.spec:main"}


def fail(message, code=1):
    """One clear line on the terminal."""
    sys.stderr.write("drupe: %s\n" % message)
    return code


def connection_file(argv):
    """The path after -f, or None when `argv` asks for something else."""
    for flag in ("-f", "--connection-file"):
        if argv[:1] == [flag] and len(argv) == 2:
            return argv[1]
    if len(argv) == 1 and argv[0].startswith("--connection-file="):
        return argv[0].partition("=")[2]
    return None


def start(path):
    if not sys.flags.safe_path:
        del sys.path[0]  # the notebook's folder: a random.py in it must not take the place of the library's
    try:
        from drupe import _jkernel
    except ImportError as error:
        return fail("the kernel's extension cannot be loaded: %s" % error)
    from drupe.kernel import features

    for line in features.problems():
        fail(line)  # it starts all the same: a notebook that cannot be opened would hide the reason
    try:
        server = _jkernel.Server(path, features=features.supported())
    except RuntimeError as error:
        return fail(error)
    server.started()
    gc.disable()  # until the shell stands: imports make no garbage
    from drupe.kernel import app

    return app.run(server)


def main(argv):
    path = connection_file(argv)
    if path is not None:
        return start(path)
    if argv == ["--version"]:
        from drupe import _jkernel

        print("drupe", _jkernel.__version__)
        return 0
    if argv[:1] and argv[0] in COMMANDS:
        import importlib
        import signal

        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` may close the pipe
        module, function = COMMANDS[argv[0]].split(":")
        return getattr(importlib.import_module(module), function)(argv[1:])
    if argv in (["--include-dir"], ["--includes"]):
        import drupe

        print(drupe.get_include() if argv[0] == "--include-dir" else "-I" + drupe.get_include())
        return 0
    if not argv or argv in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if argv[0] in ("-f", "--connection-file"):
        return fail("-f needs one connection file and nothing else", 2)
    return fail("unknown arguments %s; python -m drupe explains itself" % " ".join(argv), 2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
