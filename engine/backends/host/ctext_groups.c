/* C kernels with groups: what their text has beside that of others. ctext.c reads the text. */
#include "backends/host/code.h"
#include "backends/host/groups.h"
#include <ctype.h>
#include <string.h>

/* What kernels with groups have beside that. A group runs on one thread, so its local memory is the thread's.
 */
static const char prelude[] =
    "static void (*drupe_wait_)(void);\n"
    "#define barrier(...) (*__atomic_load_n(&drupe_wait_, 0))()\n"
    "#define work_group_barrier(...) barrier()\n"
    "#define mem_fence(d) __atomic_thread_fence(5)\n"
    "#define read_mem_fence(d) __atomic_thread_fence(2)\n"
    "#define write_mem_fence(d) __atomic_thread_fence(3)\n"
    "#define local static __thread\n#define __local static __thread\n"
    "#define CLK_LOCAL_MEM_FENCE 1\n"
    "#define CLK_GLOBAL_MEM_FENCE 2\n"
    "#define get_local_id(d) ((get_global_id(d) - get_global_offset(d)) % get_local_size(d))\n"
    "#define get_group_id(d) ((get_global_id(d) - get_global_offset(d)) / get_local_size(d))\n"
    "#define get_num_groups(d) (get_global_size(d) / get_local_size(d))\n";

drupe_status drupe_host_groups_begin(const size_t block[3], drupe_text *out)
{
    const size_t most = DRUPE_HOST_GROUP_MOST, x = block[0], y = block[1], z = block[2];
    if (!drupe_host_groups_possible())
        return drupe_error_set(DRUPE_E_UNSUPPORTED, "Kernels in C have no groups on this processor.");
    if (x > most || y > most || z > most || !x || !y || !z || x * y * z > most)
        return drupe_error_set(DRUPE_E_INVALID,
                               "A group of %zu x %zu x %zu work-items is not possible: 1 to %zu are.", x, y,
                               z, most);
    drupe_text_printf(out,
                      "%s#define get_local_size(d) ((d) == 0 ? %zu : (d) == 1 ? %zu : (d) == 2 ? %zu : 1)\n",
                      prelude, x, y, z);
    return DRUPE_OK;
}

bool drupe_host_groups_local(char *text)
{
    for (char *at = text; *at; at++) {
        if (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_')) continue;
        const size_t length = strspn(at, "_abcdefghijklmnopqrstuvwxyz");
        const bool found =
            (length == 5 && memcmp(at, "local", 5) == 0) || (length == 7 && memcmp(at, "__local", 7) == 0);
        if (!found || isalnum((unsigned char)at[length])) continue;
        memset(at, ' ', length);
        return true;
    }
    return false;
}

/* A loop over groups, and a function for each work-item. */
void drupe_host_groups_loop(drupe_text *loop, const char *name, const size_t block[3], const char *values,
                            const char *call)
{
    const size_t x = block[0], y = block[1], z = block[2];
    drupe_text_printf(
        loop,
        "  const drupe_range_ *drupe_r_ = drupe_args_[0];\n  (void)drupe_n_;\n"
        "  drupe_size_ drupe_g_[3], drupe_w_ = drupe_r_->drupe_count_[0] / %zu, drupe_h_ = "
        "drupe_r_->drupe_count_[1] / %zu;\n"
        "  void *drupe_v_[] = {(void *)drupe_r_, drupe_g_%s};\n"
        "  __atomic_store_n(&drupe_wait_, drupe_r_->drupe_barrier_, 0);\n"
        "  for (; drupe_begin_ < drupe_end_; drupe_begin_++) {\n"
        "    drupe_g_[0] = drupe_begin_ %% drupe_w_ * %zu;\n"
        "    drupe_g_[1] = drupe_begin_ / drupe_w_ %% drupe_h_ * %zu;\n"
        "    drupe_g_[2] = drupe_begin_ / drupe_w_ / drupe_h_ * %zu;\n"
        "    if (!drupe_r_->drupe_together_(drupe_one_%s, drupe_v_, %zu)) __builtin_trap();\n  }\n}\n",
        x, y, values, x, y, z, name, x * y * z);
    drupe_text_printf(
        loop,
        "static void drupe_one_%s(void *drupe_u_, drupe_size_ drupe_i_)\n{\n"
        "  void *const *drupe_v_ = drupe_u_;\n  const drupe_range_ *drupe_r_ = drupe_v_[0];\n"
        "  const drupe_size_ *drupe_g_ = drupe_v_[1], *drupe_o_ = drupe_r_->drupe_offset_, *drupe_c_ = "
        "drupe_r_->drupe_count_;\n"
        "  const drupe_item_ drupe_item = {{drupe_g_[0] + drupe_i_ %% %zu + drupe_o_[0],\n"
        "    drupe_g_[1] + drupe_i_ / %zu %% %zu + drupe_o_[1], drupe_g_[2] + drupe_i_ / %zu + "
        "drupe_o_[2]},\n"
        "    {drupe_c_[0], drupe_c_[1], drupe_c_[2]}, {drupe_o_[0], drupe_o_[1], drupe_o_[2]}};\n"
        "  %s(drupe_item%s);\n}\n",
        name, x, x, y, x * y, name, call);
}
