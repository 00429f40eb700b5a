"""python -m drupe.hosted.proxy COMMAND...: configurable-http-proxy without the hub's error pages.

JupyterHub tells its proxy to fetch error pages from the hub. Where the hub listens on a unix socket the proxy cannot,
and leaves a browser without any answer: nodejs knows no protocol "http+unix". The proxy has pages of its own.
"""
import os
import sys


def without(arguments, option):
    """The arguments less an option and its value."""
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument == option:
            next(rest, None)
        elif not argument.startswith(option + "="):
            kept.append(argument)
    return kept


if __name__ == "__main__":
    command = without(sys.argv[1:], "--error-target")
    os.execvp(command[0], command)
