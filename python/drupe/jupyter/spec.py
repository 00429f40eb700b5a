"""python -m drupe install: write the kernelspec where Jupyter looks for it."""
import argparse
import json
import os
import pathlib
import re
import shutil
import sys
import sysconfig

SOURCE = pathlib.Path(__file__).absolute().parent.parent / "kernelspec"


def _user_folder():
    if os.environ.get("JUPYTER_DATA_DIR"):
        return pathlib.Path(os.environ["JUPYTER_DATA_DIR"])
    home = os.environ.get("XDG_DATA_HOME") or pathlib.Path.home() / ".local" / "share"
    return pathlib.Path(home) / "jupyter"


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m drupe install", description="Make Jupyter find the kernel.")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="for your user (the default)")
    place.add_argument("--sys-prefix", action="store_true", help="in this Python environment")
    place.add_argument("--prefix", metavar="PATH", help="under PATH/share/jupyter")
    parser.add_argument("--name", default="drupe", help="the kernelspec's name (default: drupe)")
    parser.add_argument("--executable", nargs="?", const="", metavar="PATH",
                        help="start the program drupe-kernel (at PATH) instead of python -m drupe")
    return parser.parse_args(arguments)


def _program(wanted):
    """The absolute path of drupe-kernel: the one named, the one installed with this package, or the one on PATH."""
    for path in [wanted] if wanted else [os.path.join(sysconfig.get_path("scripts"), "drupe-kernel"), "drupe-kernel"]:
        found = shutil.which(path)
        if found:
            return os.path.abspath(found)
    raise FileNotFoundError("no program %s; give its path after --executable" % (wanted or "drupe-kernel"))


def install(folder, program=None):
    """Write the kernelspec into `folder`, for the interpreter that runs now."""
    spec = json.loads((SOURCE / "kernel.json").read_text(encoding="utf-8"))
    if program is None:
        spec["argv"][0] = sys.executable
    else:
        spec["argv"][:3] = [program, "--python", sys.executable]
    # VS Code looks for the scripts of widgets beside this interpreter.
    spec["metadata"]["interpreter"] = {"path": sys.executable}
    folder.mkdir(parents=True, exist_ok=True)
    for logo in SOURCE.glob("logo-*"):
        shutil.copyfile(logo, folder / logo.name)
    (folder / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")


def main(arguments):
    options = _parse(arguments)
    if not re.fullmatch(r"[A-Za-z0-9._-]+", options.name):
        sys.stderr.write("drupe: a kernelspec's name is made of letters, digits, '.', '_' and '-'\n")
        return 2
    if options.sys_prefix or options.prefix:
        root = pathlib.Path(options.prefix or sys.prefix) / "share" / "jupyter"
    else:
        root = _user_folder()
    folder = root / "kernels" / options.name
    try:
        install(folder, None if options.executable is None else _program(options.executable))
    except OSError as error:
        sys.stderr.write("drupe: cannot write the kernelspec: %s\n" % error)
        return 1
    print("installed the kernelspec %s in %s" % (options.name, folder))
    return 0
