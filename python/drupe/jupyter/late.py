"""What is to be done to a module once somebody imports it, so that the kernel need not import it to start."""
import sys


class _Watch:
    """A finder that finds nothing of its own: it lets the others find a watched module and acts after its execution."""

    def __init__(self):
        self.actions = {}

    def find_spec(self, name, path=None, target=None):
        if name not in self.actions:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self.actions)
                return spec
        return None


class _Loader:
    """Stands before the loader of one module until the module has been executed."""

    def __init__(self, loader, actions):
        self._loader = loader
        self._actions = actions

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        action = self._actions.pop(module.__name__, None)
        if action is not None:
            action()


_watch = _Watch()


def after_import(name, action):
    """Call `action` when the module `name` has been imported: now, or later."""
    if name in sys.modules:
        action()
        return
    _watch.actions[name] = action
    if _watch not in sys.meta_path:
        sys.meta_path.insert(0, _watch)
