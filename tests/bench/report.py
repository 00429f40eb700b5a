"""Goals, the table on the terminal, and the kernel's section of RESULTS.md."""
import pathlib
import statistics

RESULTS = pathlib.Path(__file__).parent / "RESULTS.md"
# figure, unit, how it is shown, and the factor to that unit
ROWS = [
    ("spawn -> kernel_info", "ms"), ("spawn -> first result", "ms"), ("shutdown -> process gone", "ms"),
    ("pass -> reply", "ms"), ("pass -> idle", "ms"), ("silent pass -> reply", "ms"), ("1+1 -> idle", "ms"),
    ("complete impo", "ms"), ("kernel_info on control", "ms"), ("control, GIL held 2 s", "ms"),
    ("unflushed print visible", "ms"), ("20,000 prints -> idle", "ms"), ("20,000 prints, messages", ""),
    ("20,000 prints, lost", ""), ("flushed prints", "/s"), ("flushed prints, messages", "each"),
    ("flushed prints, lost", ""), ("display_data", "/s"), ("display_data, lost", ""), ("idle memory, PSS", "MiB"),
    ("idle memory, private", "MiB"), ("threads", ""),
    ("turns given up", ""),
]


def p50(values):
    return statistics.median(values)


def p99(values):
    return sorted(values)[min(len(values) - 1, round(0.99 * (len(values) - 1)))]


class Goals:
    """The figures of a run against what was promised of them: (text, measured, limit, met)."""

    def __init__(self, results):
        self.results = results
        self.found = []
        self._check()

    def _of(self, kernel, figure, pick=p50):
        values = self.results.get(kernel, {}).get(figure)
        return pick(values) if values else None

    def _ratio(self, figure, peer, limit, pick=p50, most=True, label=""):
        ours, theirs = self._of("drupe", figure, pick), self._of(peer, figure, pick)
        if not ours or not theirs:
            return
        ratio = ours / theirs
        sign = "<=" if most else ">="
        self._add("%s%s" % (figure, label), "%.2f x %s" % (ratio, peer), "%s %g x" % (sign, limit),
                  ratio <= limit if most else ratio >= limit)

    def _add(self, figure, measured, limit, met):
        self.found.append((figure, measured, limit, met))

    def _limit(self, figure, unit, limit, what, pick=p50, label=""):
        value = self._of("drupe", figure, pick)
        if value is not None and limit is not None:
            self._add(figure + label, shown(value, unit) + " " + unit, "<= %s %s%s" % (shown(limit, unit), unit, what),
                      value <= limit)

    def _check(self):
        self._ratio("spawn -> kernel_info", "ipykernel", 0.15)
        self._ratio("spawn -> kernel_info", "xeus-python", 0.25)
        bare = self._of("IPython alone", "spawn -> first result")
        self._limit("spawn -> first result", "ms", bare and bare + 0.05, " (IPython alone + 50 ms)")
        for pick, label, most in ((p50, ", p50", 0.15), (p99, ", p99", 0.2)):
            self._ratio("pass -> idle", "ipykernel", most, pick, label=label)
            self._ratio("pass -> idle", "xeus-python", 1, pick, label=label)
        echo = self._of("C echo", "kernel_info on control")
        self._limit("kernel_info on control", "ms", echo and echo + 0.0001, " (C echo + 0.1 ms)")
        self._limit("control, GIL held 2 s", "ms", 0.0005, "", label=", p50")
        self._limit("control, GIL held 2 s", "ms", 0.002, "", p99, ", p99")
        self._ratio("20,000 prints -> idle", "ipykernel", 0.8)
        self._limit("20,000 prints, lost", "", 0, "", max)
        self._ratio("flushed prints", "ipykernel", 4, most=False)
        self._limit("flushed prints, lost", "", 0, "", max)
        self._ratio("display_data", "ipykernel", 3, most=False)
        self._limit("display_data, lost", "", 0, "", max)
        self._limit("unflushed print visible", "ms", 0.03, "", p99, ", p99")
        self._ratio("idle memory, PSS", "ipykernel", 0.85)
        self._ratio("threads", "ipykernel", 0.85)


def shown(value, unit):
    if unit == "ms":
        value *= 1000
        return "%.0f" % value if value >= 100 else "%.1f" % value if value >= 10 else "%.2f" % value
    if unit == "each":
        return "%.3f" % value
    return "%.1f" % value if unit == "MiB" else "%.0f" % value


def cell(values, unit):
    if not values:
        return ""
    middle, tail = p50(values), p99(values)
    if len(values) < 3 or middle == tail or unit == "/s":
        return shown(middle, unit)
    return "%s (%s)" % (shown(middle, unit), shown(tail, unit))


def table(results):
    """Rows of text: the head first."""
    peers = [name for name in results if name != "drupe"]
    kernels = [name for name in peers if name in ("ipykernel", "xeus-python")]
    rows = [["p50 (p99)", "drupe", *peers, *("/ " + name for name in kernels)]]
    for figure, unit in ROWS:
        values = {name: results[name].get(figure) for name in results}
        ours = values.get("drupe")
        if not ours:
            continue
        ratios = ["%.2f" % (p50(ours) / p50(values[name])) if values[name] and p50(values[name]) else ""
                  for name in kernels]
        title = figure + (", " + unit if unit else "")
        rows.append([title, *(cell(values[name], unit) for name in ["drupe", *peers]), *ratios])
    return rows


def goal_rows(goals):
    return [["goal", "measured", "wanted", ""],
            *([a, b, c, "met" if met else "missed"] for a, b, c, met in goals.found)]


def terminal(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows)


def markdown(rows):
    line = "| %s |"
    return "\n".join([line % " | ".join(rows[0]), "|" + "---|" * len(rows[0]),
                      *(line % " | ".join(row) for row in rows[1:])])


def write(name, text):
    """Put `text` between the marks of `name` in RESULTS.md."""
    begin, end = "<!-- %s -->" % name, "<!-- end of %s -->" % name
    page = RESULTS.read_text(encoding="utf-8")
    before, found, rest = page.partition(begin)
    if not found or end not in rest:
        raise SystemExit("RESULTS.md has no place for %s" % name)
    after = rest.partition(end)[2]
    RESULTS.write_text(before + begin + "\n" + text + "\n" + end + after, encoding="utf-8")
