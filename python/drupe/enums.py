"""The enumerations of devices. A member is also the string of its name: `device.device_type == "gpu"` holds, and
whatever takes a member takes the string. The words of device properties are those of drupe/device_words.h."""
from enum import Enum

__all__ = ["backend_type", "device_type", "event_status_type", "fp_config", "global_mem_cache_type", "local_mem_type",
           "memory_order", "memory_scope", "partition_affinity_domain", "partition_property"]


class Word(str, Enum):
    """A member of an enumeration, numbered from 1 in `value`."""

    def __new__(cls, text):
        member = str.__new__(cls, text)
        member._value_ = len(cls.__members__) + 1
        return member

    @classmethod
    def _missing_(cls, value):
        if isinstance(value, str):
            for member in cls:
                if str.__eq__(member, value):
                    return member
            raise ValueError(f"{cls.__name__} is one of {', '.join(cls.__members__)}, not {value!r}")
        return None

    __str__ = str.__str__
    __format__ = str.__format__
    __hash__ = str.__hash__

    def __repr__(self):
        return f"<{type(self).__name__}.{self.name}>"


def _words(name, doc, text):
    made = Word(name, [(word, word) for word in text.split()], module=__name__)
    made.__doc__ = doc
    return made


device_type = _words("device_type", "What kind a device is.", "all accelerator automatic cpu custom gpu")
backend_type = _words("backend_type", "What drives a device.", "all cuda hip level_zero opencl host")
event_status_type = _words("event_status_type", "How far work has come.", "unknown_status submitted running complete")
global_mem_cache_type = _words("global_mem_cache_type", "What the cache before global memory does.",
                               "indeterminate none read_only read_write")
local_mem_type = _words("local_mem_type", "Where local memory lies.", "none local global_mem")
partition_property = _words("partition_property", "How a device is divided.",
                            "no_partition partition_equally partition_by_counts partition_by_affinity_domain")
partition_affinity_domain = _words("partition_affinity_domain", "What the compute units of a sub-device share.",
                                   "not_applicable numa L4_cache L3_cache L2_cache L1_cache next_partitionable")
fp_config = _words("fp_config", "What floating-point arithmetic keeps to.",
                   "denorm inf_nan round_to_nearest round_to_zero round_to_inf fma correctly_rounded_divide_sqrt "
                   "soft_float")
memory_order = _words("memory_order", "Order of an atomic operation.", "relaxed acquire release acq_rel seq_cst")
memory_scope = _words("memory_scope", "Reach of an atomic operation.",
                      "work_item sub_group work_group device system")
