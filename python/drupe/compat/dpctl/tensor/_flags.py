"""usm_ndarray.flags."""


class Flags:
    """How the elements of an array lie, and whether they may be written."""

    def __init__(self, array):
        self._array = array

    def _lie(self, name):
        return self._array._drupe.flags[name]

    c_contiguous = property(lambda self: self._lie("c_contiguous"), doc="Row by row, without gaps.")
    f_contiguous = property(lambda self: self._lie("f_contiguous"), doc="Column by column, without gaps.")
    contiguous = forc = property(lambda self: self.c_contiguous or self.f_contiguous, doc="One of both.")
    fnc = property(lambda self: self.f_contiguous and not self.c_contiguous, doc="Column by column alone.")
    fc = property(lambda self: self.f_contiguous and self.c_contiguous, doc="Both.")

    @property
    def writable(self):
        """Whether elements may be written."""
        return self._array._writable

    @writable.setter
    def writable(self, value):
        if not isinstance(value, bool):
            raise TypeError(f"writable is True or False, not {value!r}")
        self._array._writable = value

    @property
    def flags(self):
        """All three as bits: 1 row by row, 2 column by column, 4 writable."""
        return int(self.c_contiguous) | 2 * int(self.f_contiguous) | 4 * int(self.writable)

    _LETTERS = {"C_CONTIGUOUS": "c_contiguous", "C": "c_contiguous", "F_CONTIGUOUS": "f_contiguous",
                "F": "f_contiguous", "WRITABLE": "writable", "W": "writable", "FC": "fc", "FNC": "fnc", "FORC": "forc",
                "CONTIGUOUS": "forc"}

    def __getitem__(self, name):
        if name not in self._LETTERS:
            raise KeyError(f"there is no flag {name!r}")
        return getattr(self, self._LETTERS[name])

    def __setitem__(self, name, value):
        if self._LETTERS.get(name) != "writable":
            raise ValueError(f"only 'WRITABLE' can be set, not {name!r}")
        self.writable = value

    def __eq__(self, other):
        return self.flags == other.flags if isinstance(other, Flags) else NotImplemented

    __hash__ = None

    def __repr__(self):
        names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITABLE")
        return "\n".join(f"  {name} : {self[name]}" for name in names)
