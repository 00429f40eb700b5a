/* Properties that only drivers of graphics cards tell, each through an extension of its vendor's; and a
 * device that can be divided along NUMA nodes. */
#include "shim.h"
#include <string.h>

typedef struct card_row {
    cl_device_info key;
    size_t size;
    const void *bytes;
} card_row;

#define NUMBER(key, number)                                                                                  \
    {                                                                                                        \
        key, sizeof(cl_uint), &(const cl_uint)                                                               \
        {                                                                                                    \
            number                                                                                           \
        }                                                                                                    \
    }
#define BYTES(key, ...)                                                                                      \
    {                                                                                                        \
        key, sizeof((unsigned char[]){__VA_ARGS__}), (const unsigned char[])                                 \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
#define TEXT(key, characters)                                                                                \
    {                                                                                                        \
        key, sizeof(characters), characters                                                                  \
    }

static const card_row nvidia[] = {
    TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_fp64 cl_nv_device_attribute_query"),
    NUMBER(0x4000, 9),    /* compute capability */
    NUMBER(0x4001, 0),    /* ... minor */
    NUMBER(0x4003, 32),   /* warp */
    NUMBER(0x4008, 0x3b), /* PCI bus */
    NUMBER(0x4009, 0x18), /* ... device and function */
    NUMBER(0x400A, 1),    /* ... domain */
    {0},
};

static const card_row amd[] = {
    TEXT(CL_DEVICE_EXTENSIONS, "cl_amd_device_attribute_query"),
    BYTES(0x4037, 1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0xc1, 2, 3),
    {0x4039, sizeof(size_t[2]), (const size_t[]){4096, 1024}}, /* free memory in KiB */
    NUMBER(0x4041, 16),
    NUMBER(0x4043, 64),
    NUMBER(0x4034, 0x73bf),
    {0},
};

static const card_row intel[] = {
    TEXT(CL_DEVICE_EXTENSIONS, "cl_intel_device_attribute_query cl_intel_required_subgroup_size"),
    NUMBER(0x4251, 0x56a0),
    NUMBER(0x4252, 8),
    NUMBER(0x4253, 4),
    NUMBER(0x4254, 16),
    NUMBER(0x4255, 7),
    {0x4108, sizeof(size_t[3]), (const size_t[]){8, 16, 32}},
    NUMBER(CL_DEVICE_MAX_NUM_SUB_GROUPS, 64),
    NUMBER(CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, 1),
    {0},
};

static const card_row khronos[] = {
    TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_device_uuid cl_khr_pci_bus_info cl_nv_device_attribute_query"),
    BYTES(0x106A, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff),
    {0x410F, sizeof(cl_uint[4]), (const cl_uint[]){0, 0xaf, 1, 2}},
    {0},
};

static const card_row nodes[] = {
    {CL_DEVICE_PARTITION_PROPERTIES, sizeof(cl_device_partition_property[1]),
     (const cl_device_partition_property[]){CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN}},
    {CL_DEVICE_PARTITION_AFFINITY_DOMAIN, sizeof(cl_device_affinity_domain),
     &(const cl_device_affinity_domain){CL_DEVICE_AFFINITY_DOMAIN_NUMA |
                                        CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE}},
    {0},
};

static const struct {
    const char *word;
    const card_row *rows;
} cards[] = {{"nvcard", nvidia}, {"amdcard", amd}, {"xecard", intel}, {"khrcard", khronos}, {"nodes", nodes}};

bool shim_card_info(cl_device_info key, size_t size, void *value, size_t *needed, cl_int *code)
{
    for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++) {
        for (const card_row *row = cards[i].rows; row->size && shim_word(cards[i].word); row++) {
            if (row->key != key) continue;
            if (needed) *needed = row->size;
            *code = value && size < row->size ? CL_INVALID_VALUE : CL_SUCCESS;
            if (value && *code == CL_SUCCESS) memcpy(value, row->bytes, row->size);
            return true;
        }
    }
    return false;
}

/* A node is what the real driver calls a compute unit. */
__attribute__((visibility("default"))) cl_int clCreateSubDevices(cl_device_id device,
                                                                 const cl_device_partition_property *wish,
                                                                 cl_uint size, cl_device_id *ids,
                                                                 cl_uint *count)
{
    const cl_device_partition_property units[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    if (shim_word("nodes")) {
        if (wish[0] != CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN || wish[1] != CL_DEVICE_AFFINITY_DOMAIN_NUMA)
            return CL_INVALID_VALUE;
        wish = units;
    }
    return SHIM_REAL(clCreateSubDevices)(device, wish, size, ids, count);
}
