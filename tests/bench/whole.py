"""Twenty whole programs, each written once for `xp`, NumPy or drupe.array, as one writes them for NumPy.

A program is a function of `xp` and of the arrays that its data makes with NumPy; it gives arrays or numbers, which the
caller compares. The sizes are a small one, to warm up, and one that takes NumPy 0.05 to 1 s. Programs that draw random
numbers draw different ones in the two libraries, so that their results are compared loosely.
"""
import math

import numpy

PROGRAMS = {}  # title: (data(rng, n), run(xp, **arrays), small n, large n, relative tolerance)


def program(title, data, small, large, rtol=1e-9):
    def keep(run):
        PROGRAMS[title] = (data, run, small, large, rtol)
        return run
    return keep


# --- stencils -----------------------------------------------------------------------------------------------


def drop_of_water(rng, n):
    u = rng.normal(size=(n, n)) * 0.01
    u[n // 3:n // 2, n // 3:n // 2] = 1
    return {"u": u}


@program("waves on a membrane, slices", drop_of_water, 40, 1000)
def waves(xp, u):
    """Leapfrog of the wave equation, fixed edges: 20 steps."""
    before, now = u.copy(), u.copy()
    for _ in range(20):
        after = xp.zeros_like(now)
        after[1:-1, 1:-1] = (2 * now[1:-1, 1:-1] - before[1:-1, 1:-1]
                             + 0.2 * (now[2:, 1:-1] + now[:-2, 1:-1] + now[1:-1, 2:] + now[1:-1, :-2]
                                      - 4 * now[1:-1, 1:-1]))
        before, now = now, after
    return now, xp.sum(now * now)


def hot_block(rng, n):
    return {"t": rng.uniform(280, 300, size=(n, n, n)), "k": rng.uniform(0.5, 1.5, size=(n, n, n))}


@program("heat in a block, 3-D, in place", hot_block, 12, 100)
def heat(xp, t, k):
    """Explicit steps of the heat equation with a conductivity that varies, heated from one side: 15 steps."""
    t = t.copy()
    for _ in range(15):
        t[0] = 400.0
        inner = t[1:-1, 1:-1, 1:-1]
        flow = (t[2:, 1:-1, 1:-1] + t[:-2, 1:-1, 1:-1] + t[1:-1, 2:, 1:-1] + t[1:-1, :-2, 1:-1]
                + t[1:-1, 1:-1, 2:] + t[1:-1, 1:-1, :-2] - 6 * inner)
        t[1:-1, 1:-1, 1:-1] += 0.1 * k[1:-1, 1:-1, 1:-1] * flow
    return t, t.mean(axis=(1, 2))


def colony(rng, n):
    return {"board": (rng.random((n, n)) < 0.35).astype("uint8")}


@program("game of life, uint8", colony, 40, 1000)
def life(xp, board):
    """40 generations; what lies beyond the edge is dead."""
    board = board.copy()
    for _ in range(40):
        n = (board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2] + board[1:-1, 2:]
             + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:])
        alive = (n == 3) | ((n == 2) & (board[1:-1, 1:-1] == 1))
        board[1:-1, 1:-1] = alive
    return board, board.sum()


def first_row(rng, n):
    return {"row": rng.integers(0, 2, n).astype("uint8"), "rule": numpy.array([0, 1, 1, 1, 0, 1, 1, 0], "uint8")}


@program("rule 110, a table of uint8", first_row, 100, 10**6)
def automaton(xp, row, rule):
    """A cellular automaton in one dimension on a ring: 40 rows, each by looking up the rule."""
    population = []
    for _ in range(40):
        row = rule[4 * xp.roll(row, 1) + 2 * row + xp.roll(row, -1)]
        population.append(row.sum())
    return row, xp.stack(population)


# --- chance and money ---------------------------------------------------------------------------------------


@program("Monte Carlo, an Asian option", lambda rng, n: {"start": rng.uniform(99, 101, n)}, 100, 80000, 0.05)
def monte_carlo(xp, start):
    """Paths of a share's price; the option pays the mean of a path above the strike."""
    steps, rate, volatility = 50, 0.03, 0.25
    rng = xp.random.default_rng(7)
    dt = 1 / steps
    draws = rng.standard_normal((start.shape[0], steps))
    logs = xp.cumsum((rate - 0.5 * volatility**2) * dt + volatility * math.sqrt(dt) * draws, axis=1)
    prices = start[:, None] * xp.exp(logs)
    pay = xp.maximum(prices.mean(axis=1) - 100, 0)
    return math.exp(-rate) * pay.mean(), math.exp(-rate) * pay.std()


def strikes(rng, n):
    return {"strike": rng.uniform(80, 120, n)}


@program("options by a binomial tree", strikes, 4, 100)
def binomial(xp, strike):
    """American puts of many strikes: 600 levels backwards."""
    steps, spot, rate, volatility = 600, 100.0, 0.05, 0.3
    dt = 1 / steps
    up = math.exp(volatility * math.sqrt(dt))
    p = (math.exp(rate * dt) - 1 / up) / (up - 1 / up)
    discount = math.exp(-rate * dt)
    level = xp.arange(steps + 1, dtype="float64")
    value = xp.maximum(strike[:, None] - spot * up**(2 * level - steps), 0)
    for step in range(steps - 1, -1, -1):
        price = spot * up**(2 * level[:step + 1] - step)
        value = discount * (p * value[:, 1:] + (1 - p) * value[:, :-1])
        value = xp.maximum(value, strike[:, None] - price)
    return value[:, 0]


def prices(rng, n):
    return {"price": 100 + rng.normal(size=n).cumsum() * 0.1}


@program("moving averages by cumsum", prices, 1000, 2 * 10**6)
def moving(xp, price):
    """Crossings of a quick and a slow mean, bands, and what trading on them would have earned."""
    def mean_of(x, width):
        sums = xp.cumsum(x)
        return (sums[width:] - sums[:-width]) / width

    slow, quick = mean_of(price, 200), mean_of(price, 20)[180:]
    deviation = xp.sqrt(xp.maximum(mean_of(price * price, 200) - slow * slow, 0))
    held = xp.where(quick > slow + 0.5 * deviation, 1.0, xp.where(quick < slow - 0.5 * deviation, -1.0, 0.0))
    change = price[201:] - price[200:-1]
    earned = xp.cumsum(held[:-1] * change)
    return earned, xp.count_nonzero(held[1:] != held[:-1]), (earned - xp.maximum(earned, 0)).min()


# --- tables and learning ------------------------------------------------------------------------------------


def measurements(rng, n):
    return {"table": rng.normal(size=(n, 8)) * rng.uniform(1, 9, 8) + rng.uniform(-5, 5, 8)}


@program("statistics of a table", measurements, 100, 400000)
def statistics_of(xp, table):
    """Moments, extremes, quartiles, correlations, and the outliers of each column."""
    mean, deviation = table.mean(axis=0), table.std(axis=0)
    z = (table - mean) / deviation
    skew, kurtosis = (z**3).mean(axis=0), (z**4).mean(axis=0) - 3
    outliers = (xp.abs(z) > 3).sum(axis=0)
    together = z.T @ z / table.shape[0]
    low, high = table.min(axis=0), table.max(axis=0)
    scaled = (table - low) / (high - low)
    middle = xp.median(table, axis=0)
    return mean, deviation, skew, kurtosis, outliers, together, scaled.mean(axis=0), middle


def groups(rng, n):
    centres = rng.uniform(-10, 10, size=(8, 3))
    points = centres[rng.integers(0, 8, n)] + rng.normal(size=(n, 3))
    return {"points": points, "centres": points[:8].copy()}


@program("k-means", groups, 100, 200000, 1e-6)
def k_means(xp, points, centres):
    """Lloyd's rounds: the distance to each centre, the nearest one, the means; 8 rounds."""
    for _ in range(8):
        far = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = far.argmin(axis=1)
        counts = xp.bincount(nearest, minlength=8)
        sums = [xp.bincount(nearest, weights=points[:, axis], minlength=8) for axis in range(3)]
        centres = xp.stack(sums, axis=1) / xp.maximum(counts, 1)[:, None]
    return centres, counts


def days(rng, n):
    x = rng.normal(size=(n, 20))
    y = (x @ rng.normal(size=20) + rng.normal(size=n) > 0).astype("float64")
    return {"x": x, "y": y}


@program("logistic regression", days, 100, 200000, 1e-7)
def logistic(xp, x, y):
    """Gradient descent with a penalty: 20 rounds, the loss of each looked at."""
    weights, offset, last = xp.zeros(x.shape[1]), 0.0, math.inf
    for _ in range(20):
        chance = 1 / (1 + xp.exp(-(x @ weights + offset)))
        loss = float(-xp.mean(y * xp.log(chance + 1e-12) + (1 - y) * xp.log(1 - chance + 1e-12)))
        if loss > last:
            break
        error = chance - y
        weights = weights - 0.5 * (x.T @ error / x.shape[0] + 0.001 * weights)
        offset, last = offset - 0.5 * float(error.mean()), loss
    return weights, offset, last


@program("principal components", lambda rng, n: {"x": rng.normal(size=(n, 60)) @ rng.normal(size=(60, 60))},
         100, 50000, 1e-6)
def components(xp, x):
    """Standardised columns, their covariance, its eigenvectors, the projection and what it leaves."""
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    values, vectors = xp.linalg.eigh(z.T @ z / z.shape[0])
    vectors = vectors[:, -10:]
    score = z @ vectors
    rest = z - score @ vectors.T
    return values, (score * score).mean(axis=0), (rest * rest).mean()


def cell_state(rng, n):
    weights = {name: rng.normal(size=(n, 4 * n)).astype("float32") * 0.05 for name in ("w", "u")}
    return {"x": rng.normal(size=(30, 256, n)).astype("float32"), **weights}


@program("an LSTM over 30 steps, float32", cell_state, 8, 128, 1e-3)
def lstm(xp, x, w, u):
    """256 sequences at a time."""
    def sigmoid(v):
        return 1 / (1 + xp.exp(-v))

    n = w.shape[0]
    h, c = xp.zeros((256, n), dtype="float32"), xp.zeros((256, n), dtype="float32")
    for step in range(x.shape[0]):
        gates = x[step] @ w + h @ u
        i, f, o = sigmoid(gates[:, :n]), sigmoid(gates[:, n:2 * n] + 1), sigmoid(gates[:, 2 * n:3 * n])
        c = f * c + i * xp.tanh(gates[:, 3 * n:])
        h = o * xp.tanh(c)
    return h, c


def heads(rng, n):
    return {name: rng.normal(size=(8, n, 64)).astype("float32") for name in "qkv"}


@program("attention, 8 heads, float32", heads, 16, 1024, 1e-3)
def attention(xp, q, k, v):
    """A causal mask, a softmax, the weighted sum."""
    n = q.shape[1]
    score = q @ xp.swapaxes(k, 1, 2) / 8.0
    score = xp.where(xp.arange(n)[:, None] >= xp.arange(n)[None, :], score, -1e9)
    weight = xp.exp(score - score.max(axis=-1, keepdims=True))
    weight = weight / weight.sum(axis=-1, keepdims=True)
    return weight @ v


# --- images -------------------------------------------------------------------------------------------------


def photograph(rng, n):
    return {"image": (rng.random((n, n * 16 // 9, 3)) * 180 + 40).astype("uint8")}


@program("filters of a photograph, uint8", photograph, 36, 1080)
def filters(xp, image):
    """Grey, a blur of 3 x 3, Sobel's edges, a threshold, contrast: back to uint8 each time."""
    grey = (0.299 * image[..., 0] + 0.587 * image[..., 1] + 0.114 * image[..., 2]).astype("uint8")
    wide = grey.astype("uint16")
    rows = wide[:-2] + 2 * wide[1:-1] + wide[2:]
    blurred = ((rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) // 16).astype("uint8")
    b = blurred.astype("int16")
    gx = b[:-2, 2:] - b[:-2, :-2] + 2 * (b[1:-1, 2:] - b[1:-1, :-2]) + b[2:, 2:] - b[2:, :-2]
    gy = b[2:, :-2] - b[:-2, :-2] + 2 * (b[2:, 1:-1] - b[:-2, 1:-1]) + b[2:, 2:] - b[:-2, 2:]
    edges = xp.clip(xp.abs(gx) + xp.abs(gy), 0, 255).astype("uint8")
    bright = xp.clip((image.astype("float32") - 128) * 1.3 + 140, 0, 255).astype("uint8")
    marked = xp.where(edges > 60, 255, blurred[1:-1, 1:-1])
    return edges, bright, marked, (255 - blurred).mean()


@program("histogram equalisation, uint8", lambda rng, n: {
    "image": (rng.normal(size=(n, n)) * 20 + 100).clip(0, 255).astype("uint8")}, 40, 3000)
def equalise(xp, image):
    """The grey levels spread evenly by a table, and the histogram afterwards."""
    counts = xp.bincount(image.reshape(-1), minlength=256)
    below = xp.cumsum(counts)
    least = below[counts > 0][0]
    table = xp.round((below - least) * 255.0 / (image.size - least)).clip(0, 255).astype("uint8")
    better = table[image]
    return better, xp.bincount(better.reshape(-1), minlength=256)


@program("Mandelbrot's set, masks", lambda rng, n: {"n": rng.integers(0, 9, n)}, 30, 600)
def mandelbrot(xp, n):
    """40 rounds for the points that have not escaped, picked by masks."""
    size = n.shape[0]
    c = xp.linspace(-2, 0.6, size)[None, :] + 1j * xp.linspace(-1.2, 1.2, size)[:, None]
    z = xp.zeros_like(c)
    rounds = xp.zeros(c.shape, dtype="int32")
    for _ in range(40):
        inside = xp.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        rounds[inside] += 1
    return rounds, rounds.sum()


# --- equations ----------------------------------------------------------------------------------------------


@program("Lorenz's equations, RK4", lambda rng, n: {"state": rng.uniform(1, 20, size=(3, n))}, 100, 100000, 1e-6)
def lorenz(xp, state):
    """Many beginnings at once, 15 steps."""
    def slope(s):
        x, y, z = s[0], s[1], s[2]
        return xp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    h = 0.01
    for _ in range(15):
        k1 = slope(state)
        k2 = slope(state + 0.5 * h * k1)
        k3 = slope(state + 0.5 * h * k2)
        k4 = slope(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state, state.mean(axis=1)


@program("conjugate gradients", lambda rng, n: {"b": rng.normal(size=(n, n))}, 40, 600, 1e-6)
def conjugate(xp, b):
    """Poisson's equation on a square without a matrix: 30 rounds."""
    def apply(u):
        out = 4 * u
        out[1:, :] -= u[:-1, :]
        out[:-1, :] -= u[1:, :]
        out[:, 1:] -= u[:, :-1]
        out[:, :-1] -= u[:, 1:]
        return out

    x = xp.zeros_like(b)
    r = b - apply(x)
    d = r.copy()
    error = float((r * r).sum())
    for _ in range(30):
        step = apply(d)
        alpha = error / float((d * step).sum())
        x += alpha * d
        r -= alpha * step
        error, before = float((r * r).sum()), error
        if math.sqrt(error) < 1e-9:
            break
        d = r + error / before * d
    return x, math.sqrt(error)


def vortices(rng, n):
    return {"w": rng.normal(size=(n, n))}


@program("turbulence, spectral", vortices, 32, 512, 1e-6)
def turbulence(xp, w):
    """Two-dimensional flow by Fourier transforms: 5 steps of the vorticity."""
    n = w.shape[0]
    kx = xp.fft.fftfreq(n, d=1 / n)[:, None]
    ky = xp.fft.rfftfreq(n, d=1 / n)[None, :]
    square = kx * kx + ky * ky
    inverse = xp.where(square > 0, 1 / xp.maximum(square, 1), 0.0)
    kept = (xp.abs(kx) < n / 3) & (xp.abs(ky) < n / 3)
    hat = xp.fft.rfft2(w) * kept
    for _ in range(5):
        stream = hat * inverse
        u, v = xp.fft.irfft2(1j * ky * stream), xp.fft.irfft2(-1j * kx * stream)
        wx, wy = xp.fft.irfft2(1j * kx * hat), xp.fft.irfft2(1j * ky * hat)
        advected = xp.fft.rfft2(u * wx + v * wy) * kept
        hat = (hat - 0.001 * advected) / (1 + 0.001 * 0.01 * square)
    return xp.fft.irfft2(hat), xp.mean(u * u + v * v)


@program("n bodies", lambda rng, n: {"place": rng.normal(size=(n, 3)), "speed": rng.normal(size=(n, 3)) * 0.1,
                                     "mass": rng.uniform(0.5, 1.5, n)}, 20, 700, 1e-7)
def bodies(xp, place, speed, mass):
    """Every pair attracts: 4 steps."""
    for _ in range(4):
        apart = place[None, :, :] - place[:, None, :]
        far = xp.sum(apart * apart, axis=2) + 0.01
        pull = mass[None, :, None] * apart / (far * xp.sqrt(far))[:, :, None]
        speed = speed + 0.001 * pull.sum(axis=1)
        place = place + 0.001 * speed
    return place, 0.5 * xp.sum(mass[:, None] * speed * speed)
