"""Which names are answered: one line for each. A dotted name stands below a package of somebody else."""
import os

# name: (the module of this package, the page that tells what differs)
PROVIDED = {
    "dpctl": ("dpctl", "compat-dpctl.md"),
    "dpnp": ("dpnp", "compat-dpnp.md"),
    "dppy": ("numba_dpex", "compat-numba.md"),
    "numba": ("numba", "compat-numba.md"),
    "numba.cuda": ("numba_cuda", "compat-numba.md"),
    "numba_dpex": ("numba_dpex", "compat-numba.md"),
    "numba_dppy": ("numba_dpex", "compat-numba.md"),
    "pyMIC": ("pymic", "compat-pymic.md"),
    "pymic": ("pymic", "compat-pymic.md"),
}
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _is_there(module):
    path = os.path.join(_FOLDER, module)
    return os.path.exists(path + ".py") or os.path.exists(os.path.join(path, "__init__.py"))


def present():
    """{name: module} of what this installation has."""
    return {name: "drupe.compat." + module for name, (module, _page) in PROVIDED.items() if _is_there(module)}


def page(name):
    """The document of a name."""
    return "docs/" + PROVIDED[name][1]
