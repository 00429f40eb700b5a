"""The compiler of kernels in Python: docs/internals/compiler.md. Users reach it by the names of drupe."""
