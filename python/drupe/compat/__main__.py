"""python -m drupe.compat program.py [arguments]: run a program whose imports are answered."""
import os
import runpy
import sys

from drupe import compat


def main(argv):
    if not argv or argv[0] in ("-h", "--help"):
        print(__doc__)
        for name, module in compat.names().items():
            print(f"  {name:<12}{module}")
        return 0 if argv else 2
    compat.enable()
    sys.argv[:] = argv
    sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
    runpy.run_path(argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
