"""%%opencl and %%cl_kernel: compile a cell of OpenCL C; its kernels become functions of the notebook."""
import argparse
import inspect
import re
import textwrap
import time

from drupe._repr import _root
from drupe.magics import diagnose, render
from drupe.magics.base import WIDTH, Magic, Option, Result, UsageError, first_line, one_line, variable_name
from drupe.magics.device import choose

_LANGUAGE = 2  # the bit of OpenCL C in Device.languages
_DEFINE = re.compile(r"[A-Za-z_]\w*(\([^)\s]*\))?(=\S*)?\Z")
_USED = re.compile(r"(?:entry function|Function properties for) '?(\w+)'?|Used (\d+) registers")


def _define(text):
    if not _DEFINE.match(text):
        raise argparse.ArgumentTypeError("%r is neither NAME nor NAME=VALUE without blanks; write #define in the cell"
                                         % text)
    return text


class OpenCL(Magic):
    """Compile the cell as OpenCL C, and bind each kernel to a variable of its name.

    Nothing is launched: call the kernel for that, kernel(*arguments, global_size=n). Errors and warnings of the
    compiler are shown at the cell's own lines. Without -d it is compiled for the default device, or, where that has no
    compiler, for the best one that has."""

    name = "opencl"
    options = (
        Option("-d", "--device", metavar="SEL", complete="device", help="the device to compile for"),
        Option("-n", "--name", metavar="NAME", type=variable_name, complete="name",
               help="bind the Program to a variable"),
        Option("-O", "--options", metavar="OPTS", action="append", default=[], help="options for the compiler"),
        Option("-D", "--define", metavar="K=V", action="append", default=[], type=_define, help="define a macro"),
        Option("-I", "--include", metavar="DIR", action="append", default=[], complete="folder",
               help="look for included files there"),
        Option("-f", "--force", action="store_true", help="build again, even if it is in the cache"),
        Option("-a", "--annotate", action="store_true", help="show what each kernel uses: registers, memory, sizes"),
        Option("--save", metavar="FILE", complete="file", help="write the built program to a file, for "
                                                               "drupe.program.load()"),
        Option("--check", action="store_true", help="only look for mistakes: bind nothing"),
    )
    examples = (
        ("%%opencl\nkernel void twice(global float *a) { a[get_global_id(0)] *= 2; }",
         "afterwards twice(x, global_size=x.size) runs it"),
        ("%%opencl -d gpu -n program -D N=16 -a\nkernel void add(global int *a) { a[get_global_id(0)] += N; }",
         "for the first GPU; program is the drupe.Program; shows registers and memory"),
    )

    def cell(self, options, body):
        if not body.strip():
            raise UsageError("%s: the cell has no code" % self.title)
        device = _compiler(options.device)
        source = "\n" * first_line(self.shell, self.name) + body
        began = time.perf_counter()
        program = self._build(source, device, options)
        built = Built(program, source, time.perf_counter() - began, options.annotate)
        built.elsewhere = _elsewhere(device) if options.device is None else None
        if options.save:
            self._save(program, options.save)
        if not options.check:
            names = self.shell.user_ns
            names.update((name, program[name]) for name in program.kernel_names)
            if options.name:
                names[options.name] = program
        return built

    def _build(self, source, device, options):
        import drupe

        words = [*options.options, *("-D " + one for one in options.define), *("-I " + one for one in options.include)]
        if options.annotate and "nvidia" in device.vendor.lower():
            words.append("-cl-nv-verbose")  # its compiler tells registers in the log only
        try:
            return drupe.Program(source, device, options=" ".join(words),
                                 cache=not options.force and "-cl-nv-verbose" not in words)
        except drupe.BuildError as error:
            raise diagnose.marked(error, source, self.shell) from None
        except drupe.UnsupportedError as error:
            raise UsageError(one_line(error)) from None

    def _save(self, program, path):
        import os

        from drupe import program as programs

        try:
            programs.save(program, os.path.expanduser(path))
        except OSError as error:
            raise UsageError("%s: cannot write %s: %s" % (self.title, path, error.strerror)) from None


class ClKernel(OpenCL):
    __doc__ = inspect.cleandoc(OpenCL.__doc__ or "") + (
        "\n\nThe same as %%opencl, with the options of pyopencl's magic: -o takes options for the compiler.")

    name = "cl_kernel"
    options = tuple(Option("-o", "-O", "--options", **one.settings) if "--options" in one.names else one
                    for one in OpenCL.options)
    examples = (
        ('%%cl_kernel -o "-cl-fast-relaxed-math"\nkernel void half_of(global float *a) { a[get_global_id(0)] /= 2; }',
         "afterwards half_of(x, global_size=x.size) runs it"),
        ("%%cl_kernel --check\nkernel void f(global int *a) { a[0] = 1; }", "says whether it compiles"),
    )


def _compiler(selector):
    """The device of a filter, or the first that it matches and that compiles OpenCL C."""
    import drupe

    device = choose(selector)
    if device.languages & _LANGUAGE:
        return device
    able = [one for one in drupe.devices() if one.languages & _LANGUAGE]
    matching = able if selector is None else [one for one in drupe.devices(selector) if one.languages & _LANGUAGE]
    if matching:
        return matching[0]
    if able:
        hint = "-d %s does" % able[0].filter_string
    else:
        from drupe import doctor

        hint = "for a device that does: %s" % doctor.advice("cpu")
    raise UsageError("%s does not compile OpenCL C; %s" % (device.filter_string, hint))


def _elsewhere(device):
    """What to type where arrays are made on another device than the one that the kernels are for; None where not."""
    import drupe

    usual = drupe.Device()
    if _root(usual) == _root(device):
        return None
    name = device.backend.name if drupe.Device(device.backend.name) == device else device.filter_string
    return ('Arrays are made on %s by default: pass x.to_device("%s"), or type %%device %s first.'
            % (usual.filter_string, name, name))


class Built(Result):
    """What %%opencl built: `program`, `seconds`, and the compiler's warnings in `diagnostics`."""

    elsewhere = None  # what is told where arrays are made on another device

    def __init__(self, program, source, seconds, annotate):
        self.program = program
        self.seconds = seconds
        self.diagnostics = diagnose.read(program.build_log, source)
        self._kernels = [_facts(program, name) for name in program.kernel_names] if annotate else None

    @property
    def _head(self):
        return "%s for %s, built in %s" % (render.count(len(self.program.kernel_names), "kernel"),
                                           self.program.device.filter_string, render.seconds(self.seconds))

    @property
    def _signatures(self):
        return [repr(self.program[name])[len("<drupe.Kernel "):-1] for name in self.program.kernel_names]

    _TITLES = ("kernel", "registers", "private", "local", "work-group", "multiple")

    def _rows(self):
        return [tuple("n/a" if value is None else value for value in one.values()) for one in self._kernels]

    def text(self, columns=WIDTH):
        parts = [self._head]
        if self._kernels is None:
            parts += ["  " + one for one in self._signatures]
        else:
            parts.append(render.table_text(self._TITLES, self._rows(), columns, right=range(1, 6)))
        if self.elsewhere:
            parts += textwrap.wrap(self.elsewhere, columns)
        return "\n".join(parts + [one.text(False) for one in self.diagnostics])

    def html(self):
        parts = [render.element("div", render.escape(self._head), "padding:2px 0")]
        if self._kernels is None:
            parts += [render.element("div", render.element("code", render.escape(one)), "padding:1px 12px")
                      for one in self._signatures]
        else:
            parts.append(render.table_html(self._TITLES, self._rows(), right=range(1, 6)))
        if self.elsewhere:
            parts.append(render.element("div", render.escape(self.elsewhere), "padding:2px 0;color:" + render.GREY))
        return render.element("div", "".join(parts + [one.html() for one in self.diagnostics]), "font-size:13px")

    def data(self):
        return {"device": self.program.device.filter_string, "seconds": self.seconds,
                "kernels": [_facts(self.program, name) for name in self.program.kernel_names],
                "warnings": [one.data() for one in self.diagnostics]}


def _facts(program, name):
    """What a kernel uses; None where the driver does not report it."""
    kernel = program[name]
    return {"name": name, "registers": _registers(program.build_log).get(name), "private": kernel.private_mem_size,
            "local": kernel.local_mem_size, "work_group": kernel.work_group_size,
            "multiple": kernel.preferred_work_group_size_multiple}


def _registers(log):
    """Registers by kernel, from the log of NVIDIA's compiler."""
    found, name = {}, None
    for match in _USED.finditer(log):
        if match[1]:
            name = match[1]
        elif name:
            found[name] = int(match[2])
    return found
