"""Errors of the compiler: one line of cause, the user's line with a caret, and what to write instead.

Codes lead to docs/kernel-errors.md, which has an example of each.
"""

# What each code is about. docs/kernel-errors.md has a section for each, and a test compares the two.
CODES = {
    "DK001": "the source of the function is not known",
    "DK002": "a statement that kernels do not have",
    "DK003": "an expression that kernels do not have",
    "DK004": "a name that is not defined",
    "DK005": "a variable that is used before it has a value",
    "DK006": "a variable that changes its kind",
    "DK007": "an argument that cannot be passed to a kernel",
    "DK008": "the wrong number of arguments",
    "DK009": "an object of Python that means nothing on a device",
    "DK010": "a function that cannot be called in a kernel",
    "DK011": "an attribute or method that there is not",
    "DK012": "an operator that these types do not have",
    "DK013": "an index that does not fit its array",
    "DK014": "a value that is not known when the kernel is compiled, and must be",
    "DK015": "memory of a work-group without one",
    "DK016": "a kernel that returns a value",
    "DK017": "a device function that calls itself",
    "DK018": "what the device cannot do",
    "DK019": "a number that does not fit its type",
    "DK020": "a barrier where not all work-items come by",
    "DK021": "a write to what cannot be written",
    "DK022": "a statement that parallel loops do not have",
    "DK023": "a variable that the rounds of a parallel loop share",
}


class KernelError(Exception):
    """Why a function cannot be a kernel. `code` is its number in docs/kernel-errors.md, `line` and `column` (from 0)
    say where in `filename`; `cause` and `remedy` are sentences."""

    def __init__(self, code, cause, remedy="", *, place=None):
        self.code, self.cause, self.remedy = code, cause, remedy
        self.filename = self.line = self.column = self.end = self.shown = self.function = None
        if place is not None:
            self.at(*place)
        super().__init__(self._text())

    def at(self, source, node):
        """Say where: a node of the tree of a Source. The first place counts."""
        if self.line is not None or node is None or not hasattr(node, "lineno"):
            return self
        self.filename, self.function = source.filename, source.title
        self.line, self.column = node.lineno, node.col_offset
        self.end = node.end_col_offset if node.end_lineno == node.lineno else None
        self.shown = source.line(node.lineno)
        self.args = (self._text(),)
        return self

    def _text(self):
        text = "%s: %s" % (self.code, self.cause)
        if self.shown is not None:
            width = max(1, (self.end or len(self.shown)) - self.column)
            before = "".join("\t" if c == "\t" else " " for c in self.shown[:self.column])
            text += "\n    %s\n    %s%s" % (self.shown, before, "^" * min(width, max(1, len(self.shown) - self.column)))
            text += "\n  line %d of %s()" % (self.line, self.function)
        return text + ("\n" + self.remedy if self.remedy else "")

    def __str__(self):
        return self._text()
