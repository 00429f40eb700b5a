"""What atomic operations and fences are told: orders, scopes and address spaces, with the numbers of SYCL."""
import enum


class MemoryOrder(enum.IntEnum):
    """What an atomic operation or a fence orders.

    RELAXED nothing but the operation itself; ACQUIRE what comes behind it; RELEASE what comes before it; ACQ_REL both;
    SEQ_CST both, in one order for all. CONSUME_UNSUPPORTED exists in SYCL's list only.

    >>> MemoryOrder.ACQ_REL
    <MemoryOrder.ACQ_REL: 4>
    """
    RELAXED = 0
    ACQUIRE = 1
    CONSUME_UNSUPPORTED = 2
    RELEASE = 3
    ACQ_REL = 4
    SEQ_CST = 5


class MemoryScope(enum.IntEnum):
    """Who sees the order: the work-item itself, its sub-group, its work-group, the device, or everybody.

    >>> MemoryScope.WORK_GROUP
    <MemoryScope.WORK_GROUP: 2>
    """
    WORK_ITEM = 0
    SUB_GROUP = 1
    WORK_GROUP = 2
    DEVICE = 3
    SYSTEM = 4


class AddressSpace(enum.IntEnum):
    """Where an element lies. An AtomicRef finds it out by itself.

    >>> AddressSpace.LOCAL
    <AddressSpace.LOCAL: 3>
    """
    PRIVATE = 0
    GLOBAL = 1
    CONSTANT = 2
    LOCAL = 3
    GENERIC = 4
