"""Kernels written in OpenCL C or C, and those of single expressions, for people who come from CuPy and PyOpenCL.

    drupe.RawKernel, drupe.RawModule                     kernels as their text is written
    drupe.ElementwiseKernel, drupe.ReductionKernel       an expression for each element; a sum or the like of many

docs/kernels-c.md compares them with those of CuPy and PyOpenCL.
"""
from drupe.raw.elementwise import ElementwiseKernel
from drupe.raw.modules import RawKernel, RawModule
from drupe.raw.reduction import ReductionKernel

__all__ = ["ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel"]
