#!/usr/bin/env python3
"""Copy the notebooks to where they may be changed and run.

What was changed there stays: a file is replaced only when it is as it was copied. Tells where the copy is, and what was
kept although there is a newer one."""
import argparse
import hashlib
import json
import pathlib
import shutil

KNOWN = ".copied.json"  # what was copied: name -> digest


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy(source, target):
    """The names of the files that were kept although there are newer ones."""
    target.mkdir(parents=True, exist_ok=True)
    record, kept = target / KNOWN, []
    known = json.loads(record.read_text()) if record.exists() else {}
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        if path.is_dir() or any(part.startswith(".") or part == "__pycache__" for part in name.parts):
            continue
        mine, now = target / name, digest(path)
        if mine.exists() and digest(mine) not in (now, known.get(str(name))):
            if known.get(str(name)) != now:
                kept.append(str(name))
            continue
        if not mine.exists() or digest(mine) != now:
            mine.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, mine)
        known[str(name)] = now
    record.write_text(json.dumps(known, indent=1))
    return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    options = parser.parse_args()
    kept = copy(options.source, options.target)
    print(f"The notebooks are copies in {options.target.resolve()}: what you change there stays yours.")
    for name in kept:
        print(f"  {name} has a newer original; delete or rename yours to get it")


if __name__ == "__main__":
    main()
