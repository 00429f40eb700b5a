#!/usr/bin/env python3
"""Print the requirements of the named extras of pyproject.toml, one per line."""
import pathlib
import sys
import tomllib


def main(extras):
    project = tomllib.loads((pathlib.Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    for extra in extras:
        print("\n".join(project["optional-dependencies"][extra]))


if __name__ == "__main__":
    main(sys.argv[1:])
