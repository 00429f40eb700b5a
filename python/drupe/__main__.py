"""python -m drupe: start the kernel, or run a command. Imports next to nothing before the sockets answer."""
import gc
import os
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
  -f CONNECTION_FILE [OPTIONS]
             start the kernel, as clients do; the options are those of IPython and ipykernel:
               --help-all     tells them all
               --show-config  tells what they and the configuration files set, and starts nothing
  --include-dir, --includes
             the folder of drupe/ext.h, alone or as a compiler's option
  --version  the version

Drupe is a Jupyter kernel with devices: in a notebook or in any Python, `import drupe`. The environment variable
DRUPE_DEVICES limits the devices, for instance DRUPE_DEVICES="host:*;opencl:gpu"."""


# Each a function of the arguments behind the command, which gives the exit code.
COMMANDS = {"cache": "drupe.program:cache_command", "devices": "drupe.listing:main", "doctor": "drupe.doctor:main",
            "install": "drupe.jupyter.spec:main"}


def fail(message, code=1):
    """One clear line on the terminal."""
    sys.stderr.write("drupe: %s\n" % message)
    return code


_FILE = ("-f", "--f", "--connection-file", "--IPKernelApp.connection_file")
_SHOWN = ("--help-all", "--show-config", "--show-config-json")


def connection_file(argv):
    """The path after -f, or None when `argv` has none; and the other arguments."""
    path, others, rest = None, [], iter(argv)
    for text in rest:
        if text == "--":
            return path, [*others, text, *rest]
        name, equals, value = text.partition("=")
        if name in _FILE:
            path = value if equals else next(rest, "")
        elif text.startswith("-f"):
            path = text[2:]  # the glued form of argparse
        else:
            others.append(text)
    return path, others


def load_kernel():
    """The kernel's extension. Of the twenty libraries below it a kernel uses few functions: they are looked up when
    they are called."""
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY)
    try:
        from drupe import _jkernel
    finally:
        sys.setdlopenflags(flags)
    return _jkernel


def start(path, options):
    if not sys.flags.safe_path:
        del sys.path[0]  # the notebook's folder: a random.py in it must not take the place of the library's
    try:
        _jkernel = load_kernel()
    except ImportError as error:
        return fail("the kernel's extension cannot be loaded: %s" % error)
    from drupe.jupyter import features

    for line in features.problems():
        fail(line)  # it starts all the same: a notebook that cannot be opened would hide the reason
    try:
        server = _jkernel.Server(path, features.kernel_info(_jkernel.__version__))
    except RuntimeError as error:
        return fail(error)
    server.started()
    gc.disable()  # until the shell stands: imports make no garbage
    from drupe.jupyter import start_imports

    end_of_start = start_imports.begin()
    from drupe.jupyter import app

    return app.run(server, options, end_of_start)


def command(argv):
    import importlib
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` may close the pipe
    module, function = COMMANDS[argv[0]].split(":")
    return getattr(importlib.import_module(module), function)(argv[1:])


def tell(argv):
    """What is asked for about Drupe itself."""
    if argv == ["--version"]:
        from drupe import _jkernel

        print("drupe", _jkernel.__version__)
        return 0
    if argv in (["--include-dir"], ["--includes"]):
        import drupe

        print(drupe.get_include() if argv[0] == "--include-dir" else "-I" + drupe.get_include())
        return 0
    if not argv or "-h" in argv or "--help" in argv:
        print(USAGE)
        return 0
    return fail("unknown arguments %s; python -m drupe explains itself" % " ".join(argv), 2)


def main(argv):
    if argv[:1] and argv[0] in COMMANDS:
        return command(argv)
    path, options = connection_file(argv)
    if path == "":
        return fail("-f needs the path of a connection file", 2)
    asked = set(options[:options.index("--")] if "--" in options else options)
    if asked.intersection(_SHOWN):
        from drupe.jupyter import application

        return application.show(options)
    if path is None or asked.intersection(("-h", "--help", "--version")):
        return tell(options)
    return start(path, options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
