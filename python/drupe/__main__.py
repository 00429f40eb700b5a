"""python -m drupe: start the kernel, or install its kernelspec. Imports next to nothing before the sockets answer."""
import gc
import sys

USAGE = """\
usage: python -m drupe -f CONNECTION_FILE
       python -m drupe install [--user | --sys-prefix | --prefix PATH] [--name NAME]
                               [--executable [PATH]]
       python -m drupe cache [list | clear]
       python -m drupe --version

Drupe is a Jupyter kernel. JupyterLab and other clients start it with -f; `install` makes them find it:
  --user         for your user (the default)
  --sys-prefix   in this Python environment
  --prefix PATH  under PATH/share/jupyter
  --name NAME    under another name than drupe
  --executable   naming the program drupe-kernel instead of python -m drupe"""


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
    if argv[:1] == ["install"]:
        from drupe.kernel import spec

        return spec.main(argv[1:])
    if argv[:1] == ["cache"]:
        from drupe import program

        return program.cache_command(argv[1:])
    if not argv or argv in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if argv[0] in ("-f", "--connection-file"):
        return fail("-f needs one connection file and nothing else", 2)
    return fail("unknown arguments %s; python -m drupe explains itself" % " ".join(argv), 2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
