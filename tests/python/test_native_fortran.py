"""What is known of subroutines in Fortran: from their texts, and with a compiler from their calls."""
import shutil

import pytest

import drupe
from drupe.native import _compile, _fortran

TEXT = """
! subroutine comment(x)
module m
contains
end module

pure subroutine axpy(n, a, x, y) ! y = a*x + y
  use iso_c_binding
  implicit none
  integer(8), intent(in) :: n
  real(8), intent(in) :: a, x(n)
  real(8), intent(inout) :: y(n)
  y = a*x + y
end subroutine axpy

recursive subroutine OLD(N, Z, M, &  ! goes on
                         & W)
  integer N*4, M
  complex*16 z(*), w(n, m)
end

subroutine bound(n, x, flag, t) bind(c, name="c_bound")
  integer(c_int), value :: n
  real(kind=c_float), dimension(n) :: x
  logical :: flag = .true.
  type(thing) :: t
  double precision unused
end subroutine

subroutine none
end subroutine

subroutine shaped(x)
  real, intent(in) :: x(:, :)
end subroutine

subroutine dynamic(x)
  real, allocatable, intent(in) :: x(:)
end subroutine

subroutine words(text)
  character(len=*), intent(in) :: text
end subroutine

subroutine jumps(n, *)
  integer n
end subroutine

real(8) function norm(n, x) result(it)
  integer(8) :: n
  real(8) :: x(n)
  it = sum(x*x)
end function
"""
EXPECTED = [
    ("axpy", "axpy_", "void axpy(const int64_t *n, const double *a, const double *x, double *y)", ""),
    ("old", "old_", "void old(int *n, double complex *z, int *m, double complex *w)", ""),
    ("bound", "c_bound", "void bound(int n, float *x, int32_t *flag, void *t)", ""),
    ("none", "none_", "void none(void)", ""),
    ("shaped", "shaped_", "void shaped(void)", "x is passed with a descriptor: give its size, as in x(n)"),
    ("dynamic", "dynamic_", "void dynamic(void)", "x is passed with a descriptor: give its size, as in x(n)"),
    ("words", "words_", "void words(void)",
     "text is text, whose length goes with it in a way of the compiler's own"),
    ("jumps", "jumps_", "void jumps(void)", "labels to return to cannot be passed"),
    ("norm", "norm_", "void norm(int64_t *n, double *x)", "it has a result: make it a subroutine"),
]
RUN = """
subroutine axpy(n, a, x, y)
  integer(8), intent(in) :: n
  real(8), intent(in) :: a, x(n)
  real(8), intent(inout) :: y(n)
  y = a*x + y
end subroutine

subroutine halve(n, z) bind(c)
  use iso_c_binding
  integer(c_int), value :: n
  complex(c_double_complex) :: z(n)
  z = z/2
end subroutine
"""


@pytest.mark.parametrize("expected", EXPECTED, ids=[one[0] for one in EXPECTED])
def test_prototypes(expected):
    found = _fortran.functions(TEXT)
    assert [one[0] for one in found] == [one[0] for one in EXPECTED]
    assert expected in found


@pytest.mark.parametrize("text", ["", "end", "subroutine", "subroutine (", "function f(", "subroutine f(a, (b)",
                                  "subroutine f(x)\nreal x((", "subroutine f(x)\nreal(8 :: x", "integer n = 'a'"])
def test_texts_that_are_none(text):
    for name, _symbol, prototype, why in _fortran.functions(text):
        assert name and prototype.startswith("void ") or why


@pytest.mark.skipif(not shutil.which("gfortran"), reason="there is no compiler for Fortran")
def test_calls():
    import numpy as np

    from drupe import array, native

    path, log = _compile.build(RUN, "fortran")
    assert log == ""
    library = native.load(path)
    made, left = _compile.bind(library, RUN, "fortran")
    assert sorted(made) == ["axpy", "halve"] and not left
    x, y = array.arange(5.0, device="host"), array.ones(5, device="host")
    made["axpy"](5, 2.0, x, y).wait()
    assert y.tolist() == [1, 3, 5, 7, 9]
    for wrong in ((5, 2.0, x), (5, 2.0, x, y, y), (5, 2.0, array.arange(5, device="host"), y)):
        with pytest.raises(TypeError):
            made["axpy"](*wrong)
    z = np.array([2 + 4j, 6])
    made["halve"](2, z).wait()
    assert z.tolist() == [1 + 2j, 3]


@pytest.mark.skipif(not shutil.which("gfortran"), reason="there is no compiler for Fortran")
def test_mistakes_stand_in_one_line_with_their_places():
    with pytest.raises(drupe.BuildError) as caught:
        _compile.build("subroutine f(x)\n  real :: x\n  x = = 1\nend subroutine\n", "fortran")
    assert ":3:" in caught.value.log and "Error: " in caught.value.log.split(":3:")[1].split("\n")[0]
