"""Twelve kernels of npbench as offload functions, which take the arguments of the kernel and give its results.

They compute what npbench's NumPy versions do, by the same method, and are written as one writes loops for a compiler.
PROGRAMS has them by their names in npbench. They were picked before anything was measured, to have one each of:
functions of elements, masked means, a flow on small arrays, a convolution, a graph, a product of BLAS, a stencil of
weather models, a stencil in time, complex numbers that escape, a simulation of few bodies, sums along rows, a sparse
matrix.
"""
import math

import numpy as np

import drupe
from drupe import prange

PROGRAMS = {}
PARTS = 64  # of the points of azimint_naive


def program(function):
    PROGRAMS[function.__name__] = made = drupe.offload(function)
    return made


@program
def arc_distance(theta_1, phi_1, theta_2, phi_2):
    """The angle between pairs of points on a sphere."""
    angle = np.empty_like(theta_1)
    for i in prange(len(theta_1)):
        a = math.sin((theta_2[i] - theta_1[i])/2)
        b = math.sin((phi_2[i] - phi_1[i])/2)
        chord = a*a + math.cos(theta_1[i])*math.cos(theta_2[i])*(b*b)
        angle[i] = 2*math.atan2(math.sqrt(chord), math.sqrt(1 - chord))
    return angle


@program
def azimint_naive(data, radius, npt):
    """The mean of what lies in each of npt rings, with one look at all points for each ring. A part of the points stays
    in the cache for all rings, and of 64 points, most of which lie elsewhere, those in the ring are counted first."""
    end = radius.max()
    size = (len(radius) + PARTS - 1)//PARTS
    sums, counts = np.zeros((PARTS, npt)), np.zeros((PARTS, npt), dtype=np.int64)
    for part in prange(PARTS):
        last = min(part*size + size, len(radius))
        for ring in range(npt):
            low, high = end*ring/npt, end*(ring + 1)/npt
            total, count = 0.0, 0
            for begin in range(part*size, last, 64):
                stop, inside = min(begin + 64, last), 0
                for i in range(begin, stop):
                    inside += low <= radius[i] < high
                if inside > 0:
                    count += inside
                    for i in range(begin, stop):
                        if low <= radius[i] < high:
                            total += data[i]
            sums[part, ring], counts[part, ring] = total, count
    return sums.sum(axis=0)/counts.sum(axis=0)


@program
def cavity_flow(nx, ny, nt, nit, u, v, dt, dx, dy, p, rho, nu):
    """Navier and Stokes in a box with a lid that moves: nt steps, in each nit rounds for the pressure."""
    b, un, vn, pn = np.zeros((ny, nx)), np.empty_like(u), np.empty_like(v), np.empty_like(p)
    square = 2*(dx*dx + dy*dy)
    for _ in range(nt):
        for i in prange(1, ny - 1):
            for j in prange(1, nx - 1):
                ux, uy = (u[i, j + 1] - u[i, j - 1])/(2*dx), (u[i + 1, j] - u[i - 1, j])/(2*dy)
                vx, vy = (v[i, j + 1] - v[i, j - 1])/(2*dx), (v[i + 1, j] - v[i - 1, j])/(2*dy)
                b[i, j] = rho*((ux + vy)/dt - ux*ux - 2*uy*vx - vy*vy)
        for _ in range(nit):
            pn[...] = p
            for i in prange(1, ny - 1):
                for j in prange(1, nx - 1):
                    p[i, j] = ((pn[i, j + 1] + pn[i, j - 1])*(dy*dy) + (pn[i + 1, j] + pn[i - 1, j])*(dx*dx)
                               - dx*dx*dy*dy*b[i, j])/square
            for i in prange(1, ny - 1):
                p[i, nx - 1], p[i, 0] = p[i, nx - 2], p[i, 1]
            for j in prange(nx):
                p[0, j], p[ny - 1, j] = p[1, j], 0.0
        un[...], vn[...] = u, v
        for i in prange(1, ny - 1):
            for j in prange(1, nx - 1):
                x, y = un[i, j]*dt/dx, vn[i, j]*dt/dy
                u[i, j] = (un[i, j] - x*(un[i, j] - un[i, j - 1]) - y*(un[i, j] - un[i - 1, j])
                           - dt/(2*rho*dx)*(p[i, j + 1] - p[i, j - 1])
                           + nu*(dt/(dx*dx)*(un[i, j + 1] - 2*un[i, j] + un[i, j - 1])
                                 + dt/(dy*dy)*(un[i + 1, j] - 2*un[i, j] + un[i - 1, j])))
                v[i, j] = (vn[i, j] - x*(vn[i, j] - vn[i, j - 1]) - y*(vn[i, j] - vn[i - 1, j])
                           - dt/(2*rho*dy)*(p[i + 1, j] - p[i - 1, j])
                           + nu*(dt/(dx*dx)*(vn[i, j + 1] - 2*vn[i, j] + vn[i, j - 1])
                                 + dt/(dy*dy)*(vn[i + 1, j] - 2*vn[i, j] + vn[i - 1, j])))
        for i in prange(ny):
            u[i, 0] = u[i, nx - 1] = v[i, 0] = v[i, nx - 1] = 0.0
        for j in prange(nx):
            u[0, j] = v[0, j] = v[ny - 1, j] = 0.0
            u[ny - 1, j] = 1.0


@program
def conv2d_bias(input, weights, bias):
    """A convolution of images, channels last, and what is added to each channel."""
    size, _, channels, features = weights.shape
    many, high, wide = input.shape[0], input.shape[1] - size + 1, input.shape[2] - size + 1
    output = np.empty((many, high, wide, features), dtype=np.float32)
    for n in prange(many):
        for i in prange(high):
            for j in prange(wide):
                sums = np.empty(8, dtype=np.float32)  # eight features at a time
                for first in range(0, features - features % 8, 8):
                    for f in range(8):
                        sums[f] = bias[first + f]
                    for y in range(size):
                        for x in range(size):
                            for c in range(channels):
                                value = input[n, i + y, j + x, c]
                                for f in range(8):
                                    sums[f] += value*weights[y, x, c, first + f]
                    for f in range(8):
                        output[n, i, j, first + f] = sums[f]
                for f in range(features - features % 8, features):
                    total = bias[f]
                    for y in range(size):
                        for x in range(size):
                            for c in range(channels):
                                total += input[n, i + y, j + x, c]*weights[y, x, c, f]
                    output[n, i, j, f] = total
    return output


@program
def floyd_warshall(path):
    """The shortest ways between all pairs of nodes."""
    n = path.shape[0]
    for k in range(n):
        for i in prange(n):
            for j in prange(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


@program
def gemm(alpha, beta, C, A, B):
    """A product of matrices, added to what is there."""
    product = A @ B
    for i in prange(C.shape[0]):
        for j in prange(C.shape[1]):
            C[i, j] = alpha*product[i, j] + beta*C[i, j]


@drupe.device_func
def laplace(field, i, j, k):
    return 4.0*field[i, j, k] - (field[i + 1, j, k] + field[i - 1, j, k] + field[i, j + 1, k] + field[i, j - 1, k])


@drupe.device_func
def flux(change, slope):
    return 0.0 if change*slope > 0 else change


@program
def hdiff(in_field, out_field, coeff):
    """Diffusion along the layers of an atmosphere, with a limiter."""
    for i in prange(out_field.shape[0]):
        for j in prange(out_field.shape[1]):
            for k in prange(out_field.shape[2]):
                x, y = i + 2, j + 2
                here, value = laplace(in_field, x, y, k), in_field[x, y, k]
                east = flux(laplace(in_field, x + 1, y, k) - here, in_field[x + 1, y, k] - value)
                west = flux(here - laplace(in_field, x - 1, y, k), value - in_field[x - 1, y, k])
                north = flux(laplace(in_field, x, y + 1, k) - here, in_field[x, y + 1, k] - value)
                south = flux(here - laplace(in_field, x, y - 1, k), value - in_field[x, y - 1, k])
                out_field[i, j, k] = value - coeff[i, j, k]*(east - west + north - south)


@program
def jacobi_2d(TSTEPS, A, B):
    """Means of five points, there and back."""
    rows, columns = A.shape
    for _ in range(1, TSTEPS):
        for i in prange(1, rows - 1):
            for j in prange(1, columns - 1):
                B[i, j] = 0.2*(A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in prange(1, rows - 1):
            for j in prange(1, columns - 1):
                A[i, j] = 0.2*(B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


@program
def mandelbrot1(xmin, xmax, ymin, ymax, xn, yn, maxiter, horizon):
    """Where each point of a picture is after at most maxiter rounds, and when it has escaped."""
    x, y = np.linspace(xmin, xmax, xn), np.linspace(ymin, ymax, yn)
    last, rounds = np.empty((yn, xn), dtype=np.complex128), np.empty((yn, xn), dtype=np.int64)
    for i in prange(yn):
        for j in prange(xn):
            c, z, count = complex(x[j], y[i]), 0j, 0
            for n in range(maxiter):
                if z.real*z.real + z.imag*z.imag >= horizon*horizon:
                    break
                count = n
                z = z*z + c
            last[i, j] = z
            rounds[i, j] = 0 if count == maxiter - 1 else count
    return last, rounds


@program
def nbody(mass, pos, vel, N, Nt, dt, G, softening):
    """Bodies that attract each other, and their energy after each step."""
    vel -= np.mean(mass*vel, axis=0)/np.mean(mass)
    acc, kinetic, potential = np.zeros_like(pos), np.empty(Nt + 1), np.empty(Nt + 1)
    for step in range(Nt + 1):
        if step > 0:
            for i in range(N):
                for axis in range(3):
                    vel[i, axis] += acc[i, axis]*dt/2
                    pos[i, axis] += vel[i, axis]*dt
        moving, bound = 0.0, 0.0
        for i in range(N):
            ax, ay, az = 0.0, 0.0, 0.0
            for j in range(N):
                dx, dy, dz = pos[j, 0] - pos[i, 0], pos[j, 1] - pos[i, 1], pos[j, 2] - pos[i, 2]
                square = dx*dx + dy*dy + dz*dz
                soft = square + softening*softening
                pull = mass[j, 0]/(soft*math.sqrt(soft))
                ax += dx*pull
                ay += dy*pull
                az += dz*pull
                if j > i:
                    bound -= mass[i, 0]*mass[j, 0]/math.sqrt(square)
            acc[i, 0], acc[i, 1], acc[i, 2] = G*ax, G*ay, G*az
            for axis in range(3):
                if step > 0:
                    vel[i, axis] += acc[i, axis]*dt/2
                moving += mass[i, 0]*vel[i, axis]*vel[i, axis]
        kinetic[step], potential[step] = 0.5*moving, G*bound
    return kinetic, potential


@program
def softmax(x):
    """Along the last of four axes."""
    rows = x.reshape(-1, x.shape[3])
    out = np.empty_like(rows)
    for i in prange(rows.shape[0]):
        most, total = rows[i, 0], np.float32(0)
        for j in range(rows.shape[1]):
            most = max(most, rows[i, j])
        for j in range(rows.shape[1]):
            out[i, j] = math.exp(rows[i, j] - most)
            total += out[i, j]
        for j in range(rows.shape[1]):
            out[i, j] /= total
    return out.reshape(x.shape)


@program
def spmv(A_row, A_col, A_val, x):
    """A sparse matrix, by rows, times a vector."""
    y = np.empty(len(A_row) - 1, dtype=A_val.dtype)
    for i in prange(len(A_row) - 1):
        total = 0.0
        for k in range(A_row[i], A_row[i + 1]):
            total += A_val[k]*x[A_col[k]]
        y[i] = total
    return y
