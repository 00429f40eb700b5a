"""What the classes have in common: an object of Drupe's, `_drupe`, behind each of dpctl's."""
from drupe.compat import NotProvided


class Wrapped:
    """Equal to another one when the objects behind are equal."""

    _drupe = None

    @classmethod
    def _of(cls, obj):
        """The one with this object behind it."""
        self = cls.__new__(cls)
        self._drupe = obj
        return self

    @property
    def __name__(self):
        return type(self).__name__

    def __eq__(self, other):
        return self._drupe == other._drupe if isinstance(other, Wrapped) else NotImplemented

    def __hash__(self):
        return hash(self._drupe)

    def addressof_ref(self):
        """The address of Drupe's object: no SYCL object stands behind it."""
        return self._drupe.addressof_ref()

    def _get_capsule(self):
        raise NotProvided(f"a capsule of {type(self).__name__} holds a C++ object of SYCL, which Drupe does not have. "
                          "An extension written over drupe/ext.h takes queues and arrays as they are")


def behind(obj):
    """Drupe's object behind one of dpctl's; anything else is given back."""
    return getattr(obj, "_drupe", obj)


def delegate(cls, names, source):
    """Properties of the object behind, with the text of those of `source`."""
    for name in names.split():
        def get(self, name=name):
            return getattr(self._drupe, name)

        setattr(cls, name, property(get, doc=getattr(source, name).__doc__))


def refuse_capsule(obj, error):
    if type(obj).__name__ == "PyCapsule":
        raise error("a capsule with a C++ object of SYCL means nothing to Drupe, which has no SYCL")
