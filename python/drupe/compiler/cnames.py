"""Names in C text: the user's, unless C or a macro has them."""
import re

_C = """auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof
_Bool bool true false NULL main linux unix i386 errno signbit isnan isinf isfinite size_t ptrdiff_t
i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 c64 c128"""
_OPENCL = """kernel global local constant private generic read_only write_only read_write half uchar ushort uint ulong
uintptr_t intptr_t event_t sampler_t pipe complex imaginary image1d_t image2d_t image3d_t queue_t
NAN INFINITY HUGE_VAL HUGE_VALF MAXFLOAT"""
# Of OpenCL's and of C's libraries; a compiler calls the last few by itself.
_FUNCTIONS = """acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi
erfc erf exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log2
log10 log1p logb mad maxmag minmag modf nan nextafter pow pown powr remainder remquo rint rootn round rsqrt sin sincos
sinh sinpi sqrt tan tanh tanpi tgamma trunc abs abs_diff add_sat hadd rhadd clamp clz ctz mad_hi mad_sat max min mul_hi
rotate sub_sat upsample popcount mad24 mul24 degrees mix radians step smoothstep sign cross dot distance length
normalize fast_distance fast_length fast_normalize isequal isnotequal isgreater isgreaterequal isless islessequal
islessgreater isfinite isinf isnan isnormal isordered isunordered signbit any all bitselect select shuffle
shuffle2 printf barrier mem_fence read_mem_fence write_mem_fence prefetch vec_step work_group_barrier
memcpy memmove memset memcmp dprintf abort alloca scalb scalbf"""
# Macros of all sorts, OpenCL's vector types and conversions, and our own names.
_PATTERN = re.compile(r"__.*|_[A-Z].*|drupe_.*|(u?(char|short|int|long)|float|double|half|bool)\d+(x\d+)?|"
                      r"(CL|CLK|M|FLT|DBL|INT|UINT|LONG|ULONG|CHAR|UCHAR|SHRT|USHRT|HALF|FP|cl|khr)_.*|"
                      r"(as|convert|native|half|vload|vstore|atomic|atom|get|async|read|write|sub|work|wait)_.*")
_WORDS = frozenset((_C + " " + _OPENCL).split())
_FUNCTION_WORDS = frozenset(_FUNCTIONS.split())


def _plain(name):
    """Letters that only some C compilers take become their numbers. The dots of names that are not the user's, such as
    x.shape0, become underscores."""
    return "".join("_" if c == "." else c if c.isascii() and (c.isalnum() or c == "_") else "u%04x" % ord(c) for c in name)


class Names:
    """One scope's names: the C name of each of the user's; no two are equal."""

    def __init__(self, taken=()):
        self._taken, self._known = set(taken), {}

    def of(self, name, key=None, function=False):
        """The C name; `key` tells things of one name apart."""
        key = name if key is None else key
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._fresh(name, function)
        return known

    def keep(self, name):
        """This name, which is ours and which nothing else has."""
        self._taken.add(name)
        self._known[name] = name
        return name

    def own(self, base):
        """A name of ours that nothing else has."""
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = "%s%d" % (base, number)
        self._taken.add(name)
        return name

    def _fresh(self, name, function):
        base = plain = _plain(name)
        # All functions share one scope with OpenCL's own, and with the C library's.
        if base in _WORDS or _PATTERN.fullmatch(base) or function and base in _FUNCTION_WORDS:
            base = plain = "py_" + base
        number = 1
        while base in self._taken:
            number += 1
            base = "%s_%d" % (plain, number)
        self._taken.add(base)
        return base

    @property
    def taken(self):
        return frozenset(self._taken)
