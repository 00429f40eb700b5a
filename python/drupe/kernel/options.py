"""The options of the command line, read by traitlets. Loaded only where there are some.

A kernel that does not start hides the reason from its user, so no option ends it: one that cannot be understood is
told in the log, and the others count.
"""
import logging

from traitlets import TraitError
from traitlets.config.loader import ArgumentError, DeferredConfig, KVArgParseConfigLoader

_silent = logging.Logger("silent")
_silent.disabled = True


class _Parser(KVArgParseConfigLoader.parser_class):
    """argparse would print its usage and exit."""

    def error(self, message):
        raise ArgumentError(message)


class _Loader(KVArgParseConfigLoader):
    parser_class = _Parser


def parse(app, argv):
    """The configuration that `argv` asks for, and the arguments that are no options."""
    try:
        found = _load(app, argv, _silent)
        _check(app, found[0])
    except (ArgumentError, TraitError, ValueError):
        argv = [text for group in _groups(argv) if _is_good(app, group) for text in group]
    return _load(app, argv, app.log)


def _load(app, argv, log):
    flags, aliases = app.flatten_flags()
    loader = _Loader(argv, aliases, flags, log=log, classes=list(app._classes_with_config_traits()))
    return loader.load_config(), loader.extra_args


def _check(app, config):
    """Raise TraitError for a value that a class of ours will refuse."""
    for cls in app._classes_with_config_traits():
        if cls.__name__ in config:
            traits = cls.class_traits(config=True)
            for name, value in config[cls.__name__].items():
                if name in traits:
                    value = value.get_value(traits[name]) if isinstance(value, DeferredConfig) else value
                    traits[name]._validate(app, value)


def _groups(argv):
    """Each option with what stands behind it. Behind `--` nothing is an option."""
    groups = []
    for place, text in enumerate(argv):
        if text == "--":
            return [*groups, argv[place:]]
        if text.startswith("-") and len(text) > 1 or not groups:
            groups.append([])
        groups[-1].append(text)
    return groups


def _is_good(app, group):
    try:
        _check(app, _load(app, group, _silent)[0])
    except (ArgumentError, TraitError, ValueError) as error:
        app.log.warning("%s is left out: %s", " ".join(group), error)
        return False
    return True
