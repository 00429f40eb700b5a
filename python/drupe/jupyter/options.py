"""The options of the command line, read by traitlets, and what is wrong in them or in a configuration file. Loaded only
where there are some.

A kernel that does not start hides the reason from its user, so no option ends it: one that cannot be understood is
told in the log, and the others count.
"""
import logging

from traitlets import TraitError
from traitlets.config.loader import ArgumentError, DeferredConfig, KVArgParseConfigLoader, LazyConfigValue

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
        return _load(app, argv, app.log)
    except (ArgumentError, ValueError):
        return _load(app, [text for group in _groups(argv) if _is_good(app, group) for text in group], app.log)


def _load(app, argv, log):
    flags, aliases = app.flatten_flags()
    loader = _Loader(argv, aliases, flags, log=log, classes=list(app._classes_with_config_traits()))
    return loader.load_config(), loader.extra_args


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
        _load(app, group, _silent)
    except (ArgumentError, ValueError) as error:
        app.log.warning("%s is left out: %s", " ".join(group), error)
        return False
    return True


def leave_out_bad(app, config):
    """Take values from `config`, of the command line or of a file, that the class they are for would refuse."""
    for cls in app._classes_with_config_traits():
        section = config[cls.__name__] if cls.__name__ in config else {}
        traits = cls.class_traits(config=True)
        for name in [name for name in section if name in traits]:
            problem = _refused(app, traits[name], section[name])
            if problem is not None:
                app.log.warning("%s.%s is left out: %s", cls.__name__, name, problem)
                del section[name]


def _refused(app, trait, value):
    if isinstance(value, LazyConfigValue):
        return None  # c.Class.trait.append(...): what it comes to is known when there is an object
    try:
        if isinstance(value, DeferredConfig):
            value = value.get_value(trait)  # what cannot be read stays text
        trait._validate(app, value)
    except TraitError:  # its text speaks of `app`, whose trait this need not be
        return "%r is not %s" % (value, trait.info())
    except ValueError as error:
        return error
    return None
