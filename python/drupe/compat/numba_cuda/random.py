"""Random numbers of kernels: xoroshiro128+ of David Blackman and Sebastiano Vigna, a state for each thread.

A state is two uint64, so states are an array of the shape (n, 2) here. The numbers are those of numba.cuda: states are
seeded by splitmix64, and each is 2**64 numbers behind the one before it.
"""
import math

import numpy

from drupe.compat.numba_cuda import _arrays
from drupe.compat.numba_cuda._written import Written

__all__ = ["create_xoroshiro128p_states", "init_xoroshiro128p_states", "xoroshiro128p_dtype",
           "xoroshiro128p_normal_float32", "xoroshiro128p_normal_float64", "xoroshiro128p_uniform_float32",
           "xoroshiro128p_uniform_float64"]

xoroshiro128p_dtype = numpy.dtype([("s0", numpy.uint64), ("s1", numpy.uint64)], align=True)
_MASK = (1 << 64) - 1
_JUMP = (0xbeac0467eba5facb, 0xd86b048b86aa9922)
_TWO_PI = 2 * math.pi


def _rotated(x, k):
    return (x << k | x >> (64 - k)) & _MASK


def _advanced(s0, s1):
    s1 ^= s0
    return _rotated(s0, 55) ^ s1 ^ (s1 << 14 & _MASK), _rotated(s1, 36)


def _seeded(seed):
    z = (seed + 0x9E3779B97F4A7C15) & _MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    z ^= z >> 31
    return z, z


def _jumped(s0, s1):
    """The state that is 2**64 numbers behind."""
    t0 = t1 = 0
    for word in _JUMP:
        for bit in range(64):
            if word >> bit & 1:
                t0, t1 = t0 ^ s0, t1 ^ s1
            s0, s1 = _advanced(s0, s1)
    return t0, t1


def init_xoroshiro128p_states(states, seed, subsequence_start=0):
    """Seed states: an array of the host, of the shape (n, 2)."""
    s0, s1 = _seeded(int(seed) & _MASK)
    for _ in range(subsequence_start):
        s0, s1 = _jumped(s0, s1)
    for at in range(len(states)):
        states[at, 0], states[at, 1] = s0, s1
        s0, s1 = _jumped(s0, s1)


def create_xoroshiro128p_states(n, seed, subsequence_start=0, stream=0):
    """States for n threads, on the device."""
    states = numpy.empty((n, 2), numpy.uint64)
    init_xoroshiro128p_states(states, seed, subsequence_start)
    return _arrays.to_device(states, stream=stream)


# --- In kernels ---------------------------------------------------------------------------------------------

def _next(states, index):
    s0 = states[index, 0]
    s1 = states[index, 1]
    result = s0 + s1
    s1 = s0 ^ s1
    states[index, 0] = (s0 << numpy.uint64(55) | s0 >> numpy.uint64(9)) ^ s1 ^ s1 << numpy.uint64(14)
    states[index, 1] = s1 << numpy.uint64(36) | s1 >> numpy.uint64(28)
    return result


def _uniform_float64(states, index):
    return (_next(states, index) >> numpy.uint64(11)) * (1.0 / (1 << 53))


def _uniform_float32(states, index):
    return numpy.float32((_next(states, index) >> numpy.uint64(11)) * (1.0 / (1 << 53)))


def _normal_float64(states, index):  # of uniform numbers in float32, as in Numba
    a = _uniform_float32(states, index)
    b = _uniform_float32(states, index)
    return math.sqrt(-2.0 * math.log(a)) * math.cos(_TWO_PI * b)


def _normal_float32(states, index):
    a = _uniform_float32(states, index)
    b = _uniform_float32(states, index)
    return math.sqrt(numpy.float32(-2.0) * math.log(a)) * math.cos(numpy.float32(_TWO_PI) * b)


xoroshiro128p_next = Written(_next)
xoroshiro128p_uniform_float32, xoroshiro128p_uniform_float64 = Written(_uniform_float32), Written(_uniform_float64)
xoroshiro128p_normal_float32, xoroshiro128p_normal_float64 = Written(_normal_float32), Written(_normal_float64)
