"""python -m drupe.hosted: commands for those who run a hub."""
import argparse
import importlib
import json
import pathlib
import sys

USAGE = """\
usage: python -m drupe.hosted COMMAND

  devices [--profiles]
             this machine's devices, as drupe-broker's configuration wants them; with usual profiles
  status [--json]
             devices, leases and the queue, as the broker tells you
  hub [--port PORT] [--folder FOLDER] [--config FILE]
             a broker and JupyterHub on the loopback interface, until Ctrl-C
  kernelspec [--profile NAME ...] [--name NAME] [--user | --sys-prefix | --prefix PATH]
             a kernelspec whose kernels lease a device each; without --profile those of the broker can be chosen

DRUPE_BROKER names the broker's socket."""


def status(argv):
    parser = argparse.ArgumentParser(prog="python -m drupe.hosted status")
    parser.add_argument("--json", action="store_true", help="the broker's answer as it is")
    options = parser.parse_args(argv)
    from drupe.hosted import view
    from drupe.hosted.client import Broker

    with Broker() as broker:
        state = broker.list()
    if options.json:
        print(json.dumps(state, indent=1))
    else:
        print("\n".join(view.lines(state)))
    return 0


def kernelspec(argv):
    parser = argparse.ArgumentParser(prog="python -m drupe.hosted kernelspec")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--user", action="store_true", help="for your user (the default)")
    place.add_argument("--sys-prefix", action="store_true", help="in this Python environment")
    place.add_argument("--prefix", metavar="PATH", help="under PATH/share/jupyter")
    parser.add_argument("--name", default="drupe-lease", help="the kernelspec's name (default: drupe-lease)")
    parser.add_argument("--profile", action="append", help="a profile of the broker; the first one is the default")
    options = parser.parse_args(argv)
    from drupe.hosted.client import Broker
    from drupe.jupyter import spec

    names = options.profile
    if not names:
        with Broker() as broker:
            names = [one["name"] for one in broker.profiles()]
    root = (pathlib.Path(options.prefix or sys.prefix) / "share" / "jupyter" if options.sys_prefix or options.prefix
            else spec._user_folder())
    folder = root / "kernels" / options.name
    spec.install(folder)
    path = folder / "kernel.json"
    made = json.loads(path.read_text(encoding="utf-8"))
    made["display_name"] = "Python 3 (Drupe, leased)"
    made["metadata"]["kernel_provisioner"] = {"provisioner_name": "drupe-provisioner", "config": {"profile": names[0]}}
    made["metadata"]["parameters"] = {"type": "object", "properties": {
        "profile": {"title": "Devices", "type": "string", "enum": names, "default": names[0]}}}
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"installed the kernelspec {options.name} in {folder}")
    return 0


def devices(argv):
    return importlib.import_module("drupe.hosted.devices").main(argv)


def hub(argv):
    return importlib.import_module("drupe.hosted.run").main(argv)


COMMANDS = {"devices": devices, "hub": hub, "kernelspec": kernelspec, "status": status}


def main(argv):
    from drupe.hosted.client import BrokerError

    if not argv or argv[0] not in COMMANDS:
        help_wanted = not argv or argv[0] in ("-h", "--help", "help")
        print(USAGE, file=sys.stdout if help_wanted else sys.stderr)
        return 0 if help_wanted else 2
    try:
        return COMMANDS[argv[0]](argv[1:])
    except (BrokerError, OSError) as error:
        sys.stderr.write(f"drupe: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
