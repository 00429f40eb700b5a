"""dpctl's enumerations: those of drupe.enums, whose members are the strings of their names as well. backend_type has
one member more, `host`."""
from drupe.enums import (backend_type, device_type, event_status_type, fp_config, global_mem_cache_type, local_mem_type,
                         memory_order, memory_scope, partition_property)

__all__ = ["backend_type", "device_type", "event_status_type", "fp_config", "global_mem_cache_type", "local_mem_type",
           "memory_order", "memory_scope", "partition_property"]
