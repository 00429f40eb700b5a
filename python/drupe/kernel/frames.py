"""Tracebacks show the user's frames: what stands between those and an error inside of Drupe helps nobody to mend it.
%xmode Verbose shows all."""
import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_WHOLE = ("Verbose", "Docs")


def leave_out_ours(formatter):
    """Have IPython's formatter of tracebacks leave frames of this package out, where others are left."""
    records_of = formatter.get_records

    def get_records(*args, **kwargs):
        records = records_of(*args, **kwargs)
        if formatter.mode in _WHOLE:
            return records
        return [one for one in records if not _is_ours(one)] or records

    formatter.get_records = get_records


def _is_ours(record):
    return (getattr(record, "filename", None) or "").startswith(_PACKAGE)
