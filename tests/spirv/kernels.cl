/* What SPIR-V tests run: types, local memory and barriers, atomic operations. */
kernel void scale(global float *x, float factor, ulong n)
{
    size_t i = get_global_id(0);
    if (i < n) x[i] = x[i] * factor + 1.0f;
}

#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void square(global double *x)
{
    x[get_global_id(0)] *= x[get_global_id(0)];
}

kernel void reverse(global int *x, local int *scratch)
{
    size_t i = get_local_id(0), n = get_local_size(0);
    scratch[i] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[get_global_id(0)] = scratch[n - 1 - i];
}

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
kernel void count(volatile global int *narrow, volatile global long *wide)
{
    atomic_inc(narrow);
    atom_add(wide, 2L);
}
