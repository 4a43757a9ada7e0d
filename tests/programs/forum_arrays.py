"""More programs as people post them: images, signals, bits, tables, sparse matrices, learning, objects."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from catalogue import Draw, Program, program
from forum import SMOOTHING, Point, image, square

FORUM_ARRAYS: list[Program] = []
posted = partial(program, FORUM_ARRAYS)


# ---- images ------------------------------------------------------------------------------------------


@posted(lambda draw: (image(draw) > 128,))
def dilate(pixels):
    h, w = pixels.shape
    out = np.zeros_like(pixels)
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if dy == 0 and dx == 0:
                continue
            y0, y1 = max(0, dy), min(h, h + dy)
            x0, x1 = max(0, dx), min(w, w + dx)
            out[y0:y1, x0:x1] |= pixels[y0 - dy : y1 - dy, x0 - dx : x1 - dx]
    return out | pixels


@posted(lambda draw: (image(draw),))
def erode(pixels):
    h, w = pixels.shape
    out = pixels.copy()
    for i in range(1, h - 1):
        for j in range(1, w - 1):
            m = 255
            for k in range(-1, 2):
                for l in range(-1, 2):
                    m = min(m, pixels[i + k, j + l])
            out[i, j] = m
    return out


@posted(lambda draw: (image(draw),))
def equalise(pixels):
    counts = np.zeros(256, dtype=np.int64)
    for v in pixels.ravel():
        counts[v] += 1
    cdf = counts.cumsum()
    least = cdf[cdf > 0].min()
    table = np.round((cdf - least) / (pixels.size - least) * 255).astype(np.uint8)
    return table[pixels]


@posted(lambda draw: (image(draw),))
def sobel(g):
    K = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    h, w = g.shape
    out = np.zeros((h, w), np.float32)
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            patch = g[y - 1 : y + 2, x - 1 : x + 2]
            gx = (patch * K).sum()
            gy = (patch * K.T).sum()
            out[y, x] = math.sqrt(gx**2 + gy**2)
    return np.clip(out, 0, 255).astype(np.uint8)


@posted(lambda draw: (image(draw),))
def median_of_nine(pixels):
    out = pixels.copy()
    for i in range(1, pixels.shape[0] - 1):
        for j in range(1, pixels.shape[1] - 1):
            w = pixels[i - 1 : i + 2, j - 1 : j + 2].flatten()
            for a in range(5):
                for b in range(8 - a):
                    lo, hi = min(w[b], w[b + 1]), max(w[b], w[b + 1])
                    w[b], w[b + 1] = lo, hi
            out[i, j] = w[4]
    return out


@posted(lambda draw: (square(draw),))
def seam(energy):
    h, w = energy.shape
    total = energy.copy()
    back = np.zeros((h, w), dtype=np.int32)
    for i in range(1, h):
        for j in range(w):
            lo = max(j - 1, 0)
            hi = min(j + 2, w)
            at = np.argmin(total[i - 1, lo:hi]) + lo
            back[i, j] = at
            total[i, j] += total[i - 1, at]
    path = np.zeros(h, dtype=int)
    path[-1] = total[-1].argmin()
    for i in range(h - 2, -1, -1):
        path[i] = back[i + 1, path[i + 1]]
    return path, total[-1].min()


@posted(lambda draw: (draw.n, 5))
def march(w, h):
    img = np.zeros((h, w))
    light = np.array([0.577, 0.577, -0.577])
    for j in range(h):
        for i in range(w):
            d = np.array([(i - w / 2) / w, (j - h / 2) / h, 1.0])
            d = d / np.linalg.norm(d)
            p = np.array([0.0, 0.0, -3.0])
            for _ in range(10):
                distance = np.linalg.norm(p) - 1.0
                p = p + d * distance
            n = p / np.linalg.norm(p)
            img[j, i] = np.where(distance < 1e-2, max(0.0, n @ light), 0.0)
    return img


@posted(lambda draw: (draw.integers(2, draw.n, draw.n), 4))
def life(board, generations):
    n, m = board.shape
    for _ in range(generations):
        new = np.zeros((n, m), dtype=board.dtype)
        for i in range(n):
            for j in range(m):
                c = 0
                for di in [-1, 0, 1]:
                    for dj in [-1, 0, 1]:
                        if di or dj:
                            c += board[(i + di) % n, (j + dj) % m]
                new[i, j] = (c == 3) | ((c == 2) & (board[i, j] == 1))
        board = new
    return board


# ---- signals and bits --------------------------------------------------------------------------------


@posted(lambda draw: (draw.normal(3), np.array([1.0, -0.4, 0.1]), draw.normal(draw.n)))
def recursive_filter(b, a, x):
    y = np.zeros(len(x))
    for n in range(len(x)):
        acc = 0.0
        for k in range(len(b)):
            if n - k >= 0:
                acc += b[k] * x[n - k]
        for k in range(1, len(a)):
            if n - k >= 0:
                acc -= a[k] * y[n - k]
        y[n] = acc / a[0]
    return y


@posted(lambda draw: (draw.normal(draw.n), draw.normal(draw.n), 4))
def adaptive_filter(x, wanted, M, mu=0.01):
    w = np.zeros(M, dtype=x.dtype)
    errors = []
    for n in range(M, len(x)):
        u = x[n - M : n][::-1]
        e = wanted[n] - np.dot(w, u)
        w += mu * e * u
        errors.append(e)
    return w, np.array(errors)


@posted(lambda draw: (draw.normal(draw.n), 3))
def smooth(x, times):
    for _ in range(times):
        y = x.copy()
        for i in range(1, len(x) - 1):
            y[i] = (x[i - 1 : i + 2] * SMOOTHING).sum()
        x = y
    return x


@posted(lambda draw: (draw.normal(draw.n), draw.normal(3)))
def convolve(x, h):
    N = len(x) + len(h) - 1
    y = np.zeros(N)
    for n in range(N):
        for k in range(max(0, n - len(x) + 1), min(n + 1, len(h))):
            y[n] += h[k] * x[n - k]
    return y


@posted(lambda draw: (draw.normal(draw.n), 3))
def moving_average(x, k):
    out = np.array([])
    for i in range(len(x) - k + 1):
        out = np.append(out, np.mean(x[i : i + k]))
    return out


@posted(lambda draw: (draw.normal(8 if draw.n < 10 else 32),))
def haar(x):
    parts = []
    while len(x) > 1:
        parts.append((x[0::2] - x[1::2]) / np.sqrt(2))
        x = (x[0::2] + x[1::2]) / np.sqrt(2)
    parts.append(x)
    return np.concatenate(parts[::-1])


@posted(lambda draw: (draw.integers(2**32, draw.n).astype(np.uint32),))
def population_count(x):
    v = x - ((x >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    return (((v + (v >> 4)) & 0xF0F0F0F) * 0x1010101) >> 24


@posted(lambda draw: (np.uint64(88172645463325252), draw.n))
def xorshift(s, n):
    out = np.empty(n, dtype=np.uint64)
    for i in range(n):
        s ^= s << np.uint64(13)
        s ^= s >> np.uint64(7)
        s ^= s << np.uint64(17)
        out[i] = s
    return out


@posted(lambda draw: (image(draw).ravel(),))
def checksums(data):
    crc = 0xFFFFFFFF
    a = b = 0
    h = np.uint32(2166136261)
    for byte in data:
        crc ^= int(byte)
        for _ in range(8):
            mask = -(crc & 1)
            crc = (crc >> 1) ^ (0xEDB88320 & mask)
        a = (a + byte) % 255
        b = (b + a) % 255
        h = np.uint32(h ^ byte) * np.uint32(16777619)
    return crc ^ 0xFFFFFFFF, (b << 8) | a, h


@posted(lambda draw: (np.arange(draw.n, dtype=np.uint8) * 37, np.array([2**31 - 1, -(2**31)], np.int32)))
def small_integers(u, i):
    s = u[0]
    for k in range(1, len(u)):
        s = s + u[k]
    t = 0
    for k in range(len(u)):
        t += u[k]
    return s, t, i + np.int32(1), i * 2, abs(i), u.sum(), u - 1, u << 1, ~u, np.mean(u), -u, u // 3 * 3


# ---- tables and sparse matrices ----------------------------------------------------------------------


@posted(lambda draw: (draw.integers(8, 3 * draw.n), draw.normal(3 * draw.n)))
def group_means(keys, values):
    sums = np.zeros(8)
    counts = np.zeros(8, int)
    np.add.at(sums, keys, values)
    np.add.at(counts, keys, 1)
    return sums / np.maximum(counts, 1), keys.max() + 1


@posted(lambda draw: (draw.integers(3, 3 * draw.n),))
def run_lengths(a):
    change = np.concatenate(([True], a[1:] != a[:-1]))
    starts = np.where(change)[0]
    return a[starts], np.diff(np.append(starts, len(a)))


def compressed(draw: Draw) -> tuple[np.ndarray, ...]:
    counts = draw.integers(4, draw.n)
    columns = draw.integers(draw.n, counts.sum())
    return np.append(0, np.cumsum(counts)), columns, draw.normal(len(columns)), draw.normal(draw.n)


@posted(compressed)
def sparse_times_vector(starts, columns, data, x):
    y = np.zeros(len(starts) - 1)
    for i in range(len(y)):
        for k in range(starts[i], starts[i + 1]):
            y[i] += data[k] * x[columns[k]]
    return y


@posted(lambda draw: (draw.integers(4, draw.n), draw.integers(5, draw.n), draw.normal(draw.n), (4, 5)))
def triplets_to_dense(rows, columns, values, shape):
    A = np.zeros(shape)
    for r, c, v in zip(rows, columns, values):  # noqa: B905
        A[r, c] += v
    return A


@posted(lambda draw: (draw.normal(4, draw.n),))
def lists_of_lists(A):
    n, m = A.shape
    T = [[0] * n for _ in range(m)]
    for i in range(n):
        for j in range(m):
            T[j][i] = A[i][j]
    rows = [A[i] for i in range(n)]
    for i in range(n - 1):
        rows[i], rows[i + 1] = rows[i + 1], rows[i]
    rows[0][:] = 0
    return np.array(T), [max(r) for r in T], np.array(rows)


@posted(lambda draw: (draw.normal(draw.n, 2),))
def polygon(P):
    pts = [Point(P[i, 0], P[i, 1]) for i in range(len(P))]
    area = 0
    for p, q in zip(pts, pts[1:] + pts[:1]):  # noqa: B905
        area += p.x * q.y - q.x * p.y
    return abs(area) / 2, Point(P[:, 0].mean(), P[:, 1].mean())


# ---- learning ----------------------------------------------------------------------------------------


@posted(lambda draw: (draw.normal(draw.n), draw.normal(draw.n)))
def regression(x, y):
    n = len(x)
    sx, sy, sxy, sxx = 0, 0, 0, 0
    for xi, yi in zip(x, y):  # noqa: B905
        sx += xi
        sy += yi
        sxy += xi * yi
        sxx += xi**2
    slope = (n * sxy - sx * sy) / (n * sxx - sx**2)
    return {"slope": slope, "start": (sy - slope * sx) / n}


@posted(lambda draw: (draw.normal(draw.n), draw.uniform(0, 1, draw.n)))
def logistic(x, y, rate=0.5, epochs=50):
    y = (y > 0.5).astype(float)
    w, b = 0.0, 0.0
    for _ in range(epochs):
        p = 1 / (1 + np.exp(-(w * x + b)))
        w -= rate * np.mean((p - y) * x)
        b -= rate * np.mean(p - y)
    return w, b, np.mean((p > 0.5) == y)


@posted(lambda draw: (draw.normal(draw.n, 3), draw.integers(2, draw.n)))
def perceptron(X, y):
    w = np.zeros(X.shape[1])
    b = 0
    errors = 0
    for _ in range(5):
        for xi, ti in zip(X, y):  # noqa: B905
            delta = ti - (np.dot(w, xi) + b > 0).astype(int)
            w += 0.1 * delta * xi
            b += 0.1 * delta
            errors += abs(delta)
    return w, b, errors


@posted(lambda draw: (np.append(draw.normal(draw.n), draw.normal(draw.n) + 5), 2, 5))
def mixture(x, K, steps):
    n = len(x)
    mu = np.linspace(x.min(), x.max(), K)
    var = np.ones(K) * x.var()
    w = np.ones(K) / K
    likelihood = -np.inf
    for _ in range(steps):
        r = np.zeros((n, K))
        for k in range(K):
            r[:, k] = w[k] * np.exp(-((x - mu[k]) ** 2) / (2 * var[k])) / np.sqrt(2 * np.pi * var[k])
        total = r.sum(axis=1)
        likelihood = np.log(total).sum()
        r = r / total[:, None]
        N = r.sum(axis=0)
        for k in range(K):
            mu[k] = (r[:, k] * x).sum() / N[k]
            var[k] = (r[:, k] * (x - mu[k]) ** 2).sum() / N[k]
        w = N / n
    return mu, var, w, likelihood


@posted(lambda draw: (draw.normal(draw.n, 3), draw.normal(draw.n), 3))
def adam(X, y, epochs, batch=4):
    w = np.zeros(X.shape[1])
    m = np.zeros_like(w)
    v = np.zeros_like(w)
    t = 0
    for _ in range(epochs):
        for s in range(0, len(X), batch):
            t += 1
            xb, yb = X[s : s + batch], y[s : s + batch]
            g = xb.T @ (xb @ w - yb) / len(yb)
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g**2
            w -= 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w, t


class Dual:
    """A number and its derivative."""

    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __add__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        other = other if isinstance(other, Dual) else Dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def sin(self):
        return Dual(np.sin(self.value), np.cos(self.value) * self.slope)


@posted(lambda draw: (draw.normal(draw.n), 6))
def derivatives(x, n):
    d = Dual(x, np.ones_like(x))
    y = d
    for _ in range(n):
        y = (y * d + 1).sin() * 0.5 + d
    return y.value, y.slope
