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
    ("old", "old_", "void old(int32_t *n, double complex *z, int *m, double complex *w)", ""),
    ("bound", "c_bound", "void bound(int n, float *x, int32_t *flag, void *t)", ""),
    ("none", "none_", "void none(void)", ""),
    ("shaped", "shaped_", "void shaped(void)", "x is passed with a descriptor: give its size, as in x(n)"),
    ("dynamic", "dynamic_", "void dynamic(void)", "x is passed with a descriptor: give its size, as in x(n)"),
    ("words", "words_", "void words(void)",
     "text is text, whose length goes with it in a way of the compiler's own"),
    ("jumps", "jumps_", "void jumps(void)", "labels to return to cannot be passed"),
    ("norm", "norm_", "void norm(int64_t *n, double *x)", "it has a result: make it a subroutine"),
]
# What one text says in one line each, whose name is f: (text, prototype, why it is refused)
HARD = [
    ("n, x\ninteger(selected_int_kind(18)) :: n\nreal(kind=kind(1.0d0)), intent(in) :: x(n)",
     "void *n, const void *x", ""),
    ("n, x\ninteger(8) :: n; real(8) :: x(n)", "int64_t *n, double *x", ""),
    ("n, x, y\ninteger n*8\nreal x(3)*8, y*4(3)", "int64_t *n, double *x, float *y", ""),
    ("n, x\ninteger :: n ! more & \nreal(8) :: x", "int *n, double *x", ""),
    ("n, x, y\ninteger :: n\nreal :: x(0:n - 1, -1:*)\nreal, dimension(1:n) :: y",
     "int *n, float *x, float *y", ""),
    ("n\ntype point\nreal :: n\nend type\ninteger(8) :: n", "int64_t *n", ""),
    ("n, x\ninteger(8) n\nreal x\nvalue n\ndimension x(2:n)", "int64_t n, float *x", ""),
    ("n, g\ninterface\nsubroutine g(n)\nreal(8) :: n\nend subroutine\nend interface\ninteger(8) :: n",
     None, "g is a procedure, which cannot be passed"),
    ("g\nexternal g", None, "g is a procedure, which cannot be passed"),
    ("g\nprocedure(h), pointer :: g", None, "g is a procedure, which cannot be passed"),
    ("x\nclass(*) :: x", None, "x is of a class, and passed with a descriptor"),
    ("n\ninteger, optional, value :: n", None, "n is optional and goes by value, in a way of the compiler's own"),
    *(("x\n" + one, None, "x is passed with a descriptor: give its size, as in x(n)")
      for one in ("real :: x(..)", "real :: x(0:)", "real :: x(size((/1, 2/)), :)", "real x\npointer :: x",
                  "real x\nallocatable x(:)", "real, dimension(:) :: x")),
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

subroutine sums(n, x, total)
  integer(selected_int_kind(18)), intent(in) :: n
  real(kind=kind(1.0d0)), intent(in) :: x(0:n - 1)
  real(kind=kind(1.0d0)) :: total(1:1)
  total(1) = sum(x)
end subroutine
"""


@pytest.mark.parametrize("expected", EXPECTED, ids=[one[0] for one in EXPECTED])
def test_prototypes(expected):
    found = _fortran.functions(TEXT)
    assert [one[0] for one in found] == [one[0] for one in EXPECTED]
    assert expected in found


@pytest.mark.parametrize("text, parameters, why", HARD)
def test_declarations(text, parameters, why):
    arguments, body = text.split("\n", 1)
    found = _fortran.functions("subroutine f(%s)\n%s\nend subroutine\n" % (arguments, body))
    assert found == [("f", "f_", "void f(%s)" % (parameters or "void"), why)]


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
    assert sorted(made) == ["axpy", "halve", "sums"] and not left
    x, y = array.arange(5.0, device="host"), array.ones(5, device="host")
    made["axpy"](5, 2.0, x, y).wait()
    assert y.tolist() == [1, 3, 5, 7, 9]
    total = array.zeros(1, device="host")
    made["sums"](5, y, total).wait()
    assert total.tolist() == [25]
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
