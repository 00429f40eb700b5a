"""Seeds of random generators: numpy.random.SeedSequence's hash, so that equal seeds give equal keys.

Source: M. E. O'Neill, "Developing a seed_seq alternative", 2015. All arithmetic is modulo 2^32."""
import operator
import os

_MASK = 0xFFFFFFFF
_POOL = 4


def _words(value):
    """The 32-bit words of a seed, lowest first: of a non-negative integer, or of a sequence of them."""
    if isinstance(value, (list, tuple)) or (hasattr(value, "__len__") and not isinstance(value, (str, bytes))):
        return [word for item in value for word in _words(item)]
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"a seed is an integer or a sequence of integers, not {type(value).__name__}") from None
    if value < 0:
        raise ValueError(f"a seed must not be negative, and {value} is")
    words = [value & _MASK]
    while value := value >> 32:
        words.append(value & _MASK)
    return words


class _Hash:
    """A multiplier that changes with each word."""

    def __init__(self, start, factor):
        self.constant, self.factor = start, factor

    def __call__(self, word):
        word ^= self.constant
        self.constant = self.constant * self.factor & _MASK
        word = word * self.constant & _MASK
        return word ^ word >> 16


def _mix(x, y):
    result = (0xCA01F9DD * x - 0x4973F715 * y) & _MASK
    return result ^ result >> 16


class SeedSequence:
    """Entropy and the path of children that lead to a generator.

    entropy: a non-negative integer, a sequence of them, or None for 128 bits of the system's. spawn_key: the path.
    TypeError: entropy that is not made of integers; ValueError: one that is negative.

    >>> da.random.SeedSequence(42)
    SeedSequence(entropy=42, spawn_key=())
    """

    def __init__(self, entropy=None, *, spawn_key=(), n_children_spawned=0):
        self.entropy = int.from_bytes(os.urandom(16), "little") if entropy is None else entropy
        self.spawn_key = tuple(spawn_key)
        self.n_children_spawned = n_children_spawned
        entropy = _words(self.entropy)
        if self.spawn_key:
            entropy += [0] * (_POOL - len(entropy)) + _words(self.spawn_key)
        self._pool = self._mixed(entropy)

    @staticmethod
    def _mixed(entropy):
        hashed = _Hash(0x43B0D7E5, 0x931E8875)
        pool = [hashed(entropy[i] if i < len(entropy) else 0) for i in range(_POOL)]
        for source in range(_POOL):
            for place in range(_POOL):
                if source != place:
                    pool[place] = _mix(pool[place], hashed(pool[source]))
        for word in entropy[_POOL:]:
            for place in range(_POOL):
                pool[place] = _mix(pool[place], hashed(word))
        return pool

    def key(self):
        """The two words of 64 bits that a Philox generator takes as its key.

        >>> len(da.random.SeedSequence(42).key())
        2
        """
        hashed = _Hash(0x8B51F9DD, 0x58F38DED)
        words = [hashed(word) for word in self._pool]
        return words[0] | words[1] << 32, words[2] | words[3] << 32

    def spawn(self, n_children):
        """So many sequences that differ from this one, from each other and from those of other calls.

        >>> [child.spawn_key for child in da.random.SeedSequence(42).spawn(2)]
        [(0,), (1,)]
        """
        first = self.n_children_spawned
        self.n_children_spawned += n_children
        return [SeedSequence(self.entropy, spawn_key=(*self.spawn_key, i))
                for i in range(first, self.n_children_spawned)]

    def __repr__(self):
        return f"SeedSequence(entropy={self.entropy}, spawn_key={self.spawn_key})"
