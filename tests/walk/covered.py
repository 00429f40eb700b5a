"""Fail when a public function is called by no scene of the walk."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
# The room of arrays is the one that postpones. The next end or change how the process ends;
# tests/unit/host/test_fault.c has them. The rest sets an error.
ELSEWHERE = {"drupe_postpone_by", "drupe_fault_claim", "drupe_fault_contain", "drupe_fault_install",
             "drupe_error_set_native", "drupe_error_restore"}


def main():
    scenes = "".join(path.read_text() for path in HERE.glob("*.c"))
    missing = []
    root = HERE.parents[1]
    for header in sorted([*root.glob("base/include/drupe/*.h"), *root.glob("engine/include/drupe/*.h")]):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for name in re.findall(r"DRUPE_API[^;{]*?\b(drupe_\w+)\(", text):
            if name not in ELSEWHERE and not re.search(rf"\b{name}\(", scenes):
                missing.append(f"{header.name}: {name}() is in no scene of tests/walk")
    print("\n".join(missing) or "all public functions are walked")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
