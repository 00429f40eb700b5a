"""Kernels as plain Python, work-item by work-item, to see what they do: with print(), breakpoint() and debuggers, with
barriers, local memory, atomics and sub-groups, and with modes that find what no device tells.

    from drupe import kernel_api, simulator

    kernel_api.call_kernel(kernel, NdRange(64, 8), a, b)                run it here
    simulator.call_kernel(kernel, NdRange(64, 8), a, b, races=True)     the same, and find data races
    with simulator.options(uninitialized=True, seed=1): ...             for all that is simulated in a block
    simulator.run_group(kernel, NdRange(64, 8), 3, [a, b], stop_at=25)  one group alone, and a debugger in a work-item

docs/simulator.md tells of each.
"""
import drupe.kernel_api  # noqa: F401  the modules below are written with its parts, and it with calls
from drupe.simulator.calls import call_kernel, run_group
from drupe.simulator.errors import (Access, BarrierDivergenceError, DataRaceError, SimulatorError,
                                    UninitializedMemoryError)
from drupe.simulator.options import Options, options

__all__ = ["Access", "BarrierDivergenceError", "DataRaceError", "Options", "SimulatorError", "UninitializedMemoryError",
           "call_kernel", "options", "run_group"]
