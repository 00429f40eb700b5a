"""The public conformance suite, with everything it can ask for."""
import pathlib

import jupyter_kernel_test
import pytest
from jupyter_client.kernelspec import KernelSpecManager


class OwnKernelspec:
    """The suites start kernels by name: `drupe` is the tests' own kernelspec meanwhile."""

    kernel_name = "drupe"

    @classmethod
    def setUpClass(cls):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUPYTER_PATH", str(OwnKernelspec.data_folder))
            super().setUpClass()


@pytest.fixture(autouse=True, scope="session")
def _data_folder(data_folder):
    OwnKernelspec.data_folder = data_folder


class TestWelcome(OwnKernelspec, jupyter_kernel_test.IopubWelcomeTests):
    support_iopub_welcome = True


class TestConformance(OwnKernelspec, jupyter_kernel_test.KernelTests):
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples = [
        {"text": "zi", "matches": {"zip"}},
        {"text": "import os; os.getpi", "matches": {"getpid"}},
    ]
    complete_code_samples = ["1", "print('hello, world')", "def f(x):\n  return x*2\n\n\n"]
    incomplete_code_samples = ["print('''hello", "def f(x):\n  x*2"]
    invalid_code_samples = ["import = 7q"]
    code_page_something = "zip?"
    code_generate_error = "raise ValueError('no')"
    code_execute_result = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
    ]
    code_display_data = [
        {"code": "from IPython.display import HTML, display; display(HTML('<b>test</b>'))", "mime": "text/html"},
        {"code": "from IPython.display import Math, display; display(Math('\\\\frac{1}{2}'))", "mime": "text/latex"},
    ]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"


def test_the_suite_runs_our_kernel(spec_folder, data_folder, monkeypatch):
    monkeypatch.setenv("JUPYTER_PATH", str(data_folder))
    spec = KernelSpecManager().get_kernel_spec("drupe")
    assert pathlib.Path(spec.resource_dir).resolve() == (spec_folder / "drupe").resolve()
