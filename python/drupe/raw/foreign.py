"""CUDA C and C++ in a text for OpenCL C or C: found before a compiler sees it, and refused with what to write."""
import re

from drupe._engine import Device, UnsupportedError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
_EXTERN = re.compile(r'extern\s+"C"')
_AXIS = {"x": "0", "y": "1", "z": "2"}
_GLOBAL_ID = re.compile(r"""
      blockIdx\.([xyz]) \s*\*\s* blockDim\.\1 \s*\+\s* threadIdx\.\1
    | blockDim\.([xyz]) \s*\*\s* blockIdx\.\2 \s*\+\s* threadIdx\.\2
    | threadIdx\.([xyz]) \s*\+\s* blockIdx\.\3 \s*\*\s* blockDim\.\3
    | threadIdx\.([xyz]) \s*\+\s* blockDim\.\4 \s*\*\s* blockIdx\.\4""", re.X)
# What is found, and what OpenCL C and C have for it; None: nothing.
_WORDS = (
    (re.compile(r"\b__global__\b"), "kernel", "kernel"),
    (re.compile(r"\b(?:__device__|__host__|__forceinline__|__launch_bounds__\s*\([^)]*\))"), "(leave it out)",
     "(leave it out)"),
    (re.compile(r"\bextern\s+__shared__\b"), "a parameter `local float *part`", "a parameter `local float *part`"),
    (re.compile(r"\b__shared__\b"), "local", "local"),
    (re.compile(r"\b__constant__\b"), "constant", "static const"),
    (re.compile(r"\b__syncthreads\s*\(\s*\)"), "barrier(CLK_LOCAL_MEM_FENCE)", "barrier(CLK_LOCAL_MEM_FENCE)"),
    (re.compile(r"\b__(?:shfl|ballot|any|all|syncwarp)\w*"), "sub_group_... of OpenCL C 3.0", None),
    (re.compile(r"\bthreadIdx\.[xyz]\b"), "get_local_id({0})", "get_local_id({0})"),
    (re.compile(r"\bblockIdx\.[xyz]\b"), "get_group_id({0})", "get_group_id({0})"),
    (re.compile(r"\bblockDim\.[xyz]\b"), "get_local_size({0})", "get_local_size({0})"),
    (re.compile(r"\bgridDim\.[xyz]\b"), "get_num_groups({0})", "get_num_groups({0})"),
    (re.compile(r"\batomicAdd\b"), "atomic_add, for integers", "__atomic_fetch_add, for integers"),
    (re.compile(r"\btemplate\s*<"), "a macro for each type, or T of an ElementwiseKernel",
     "a macro for each type, or T of an ElementwiseKernel"),
)
_SURE = re.compile(r"\b(?:__global__|__device__|__shared__|__syncthreads|(?:thread|block)Idx\.|blockDim\.|gridDim\."
                   r"|__constant__)|\btemplate\s*<")


def without_comments(text: str) -> str:
    """The text with spaces where comments and strings are; lines stay lines."""
    return _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def refuse_cuda(text: str, language: "str | None", what: str = "code") -> None:
    """UnsupportedError for CUDA C and templates of C++. What to write is told in a language; None: that of the default
    device."""
    code = without_comments(text)
    if not _SURE.search(code) and not _EXTERN.search(text):
        return
    language = language or ("c" if Device().filter_string.startswith("host") else "opencl")
    told, column = [], 1 if language == "opencl" else 2
    if _EXTERN.search(text):
        told.append('extern "C"  ->  (leave it out)')
    if "__global__" in code and language == "opencl":
        told.append("float *x  ->  global float *x, for each pointer in the head of a kernel")
    for found in _GLOBAL_ID.finditer(code):
        axis = _AXIS[next(filter(None, found.groups()))]
        told.append(f"{found[0]}  ->  get_global_id({axis})")
    code = _GLOBAL_ID.sub("", code)
    for row in _WORDS:
        for found in row[0].finditer(code):
            written = row[column] or "(there is none in C on host; use an OpenCL device)"
            told.append(f"{found[0]}  ->  {written.format(_AXIS.get(found[0][-1], ''))}")
        code = row[0].sub("", code)
    name = "OpenCL C" if language == "opencl" else "C"
    raise UnsupportedError(f"The {what} is CUDA C or C++, which is compiled for no device here. In {name} write\n    "
                           + "\n    ".join(dict.fromkeys(told)) + "\nThe page docs/kernels-c.md has the whole list.")


def has_groups(text: str) -> bool:
    """Whether a text in C has barriers or local memory, so that its work-items run in groups on `host`."""
    code = without_comments(text)
    return re.search(r"\b(barrier|work_group_barrier|mem_fence|CLK_LOCAL_MEM_FENCE)\b|\b(__)?local\s+\w",
                     code) is not None
