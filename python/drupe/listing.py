"""python -m drupe devices: what this machine has."""
import argparse
import json
import sys

from drupe._units import size


def short(devices):
    rows = [("filter", "units", "memory", "name", "platform")]
    rows += [(one.filter_string, str(one.max_compute_units), size(one.global_mem_size), one.name, one.platform_name)
             for one in devices]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def plain(value):
    """A property as text; "?" if the driver does not report it."""
    if value is None:
        return "?"
    return " ".join(map(str, value)) or "-" if isinstance(value, tuple) else str(value)


def long(devices):
    for one in devices:
        print(one.filter_string)
        for name, value in one.info().items():
            print(f"    {name:<42}{plain(value)}")


def main(argv):
    parser = argparse.ArgumentParser(prog="python -m drupe devices", description="List the devices of this machine.")
    parser.add_argument("filter", nargs="?", help='such as "gpu", "opencl:cpu" or "host:cpu:0.1"')
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("-l", "--long", action="store_true", help="all properties; ? if the driver does not report one")
    shape.add_argument("--json", action="store_true", help="the same as JSON")
    shape.add_argument("-p", "--platforms", action="store_true", help="by platform")
    options = parser.parse_args(argv)

    import drupe

    try:
        found = drupe.devices(options.filter)
    except drupe.DeviceError as error:
        sys.stderr.write(f"drupe: {error}\n")
        return 2
    if options.json:
        print(json.dumps([one.info() for one in found], indent=2))
    elif options.platforms:
        for platform in dict.fromkeys(one.platform for one in found):
            platform.print_platform_info(2)
    elif options.long:
        long(found)
    else:
        short(found)
        everything = found if options.filter is None else drupe.devices()
        if not found:
            there = ", ".join(one.filter_string for one in everything)
            print("\n" + (f"No device matches '{options.filter}'. There are: {there}." if there else "There is none.")
                  + ' "python -m drupe doctor" says what is missing.')
        elif all(one.backend == "host" for one in everything):
            print('\nOnly the built-in device is here. "python -m drupe doctor" says what others need.')
    return 0
