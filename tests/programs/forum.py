"""Small programs of many fields as people post them: index loops, rows of rows, appended lists, swapped
names, early `continue`, helper functions and objects, Python numbers among NumPy's."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from functools import partial

import numpy as np
from catalogue import Draw, Program, program

FORUM: list[Program] = []
posted = partial(program, FORUM)

GRAVITY = 9.81
SMOOTHING = np.array([0.25, 0.5, 0.25])
Point = namedtuple("Point", "x y")


def square(draw: Draw, shift: float = 0.0) -> np.ndarray:
    return draw.uniform(0, 1, draw.n, draw.n) + shift * np.eye(draw.n, dtype=draw.dtype)


def image(draw: Draw) -> np.ndarray:
    return draw.integers(256, draw.n, draw.n + 3).astype(np.uint8)


# ---- numerical analysis ------------------------------------------------------------------------------


@posted(lambda draw: (0.5, 2.0, 2 * draw.n))
def simpson(a, b, n):
    h = (b - a) / n
    x = np.linspace(a, b, n + 1)
    y = np.sin(x) * np.exp(-x)
    s = y[0] + y[-1]
    for i in range(1, n, 2):
        s += 4 * y[i]
    for i in range(2, n, 2):
        s += 2 * y[i]
    return s * h / 3


@posted(lambda draw: (draw.uniform(0, 1, 2), 5 if draw.n < 10 else 7))
def romberg(ends, n):
    a, b = ends
    R = np.zeros((n, n))
    h = b - a
    R[0, 0] = 0.5 * h * (np.exp(-a * a) + np.exp(-b * b))
    points = 1
    for i in range(1, n):
        h = h / 2
        total = 0.0
        points *= 2
        for k in range(1, points, 2):
            total += np.exp(-((a + k * h) ** 2))
        R[i, 0] = 0.5 * R[i - 1, 0] + h * total
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
    return R[n - 1, n - 1], R


@posted(lambda draw: (np.cumsum(draw.uniform(0.5, 1, draw.n)), draw.normal(draw.n), draw.uniform(0.5, 3, 9)))
def cubic_spline(x, y, xq):
    n = len(x) - 1
    h = np.diff(x)
    alpha = np.zeros(n + 1)
    for i in range(1, n):
        alpha[i] = 3 / h[i] * (y[i + 1] - y[i]) - 3 / h[i - 1] * (y[i] - y[i - 1])
    l, mu, z = np.ones(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    for i in range(1, n):
        l[i] = 2 * (x[i + 1] - x[i - 1]) - h[i - 1] * mu[i - 1]
        mu[i] = h[i] / l[i]
        z[i] = (alpha[i] - h[i - 1] * z[i - 1]) / l[i]
    c, b, d = np.zeros(n + 1), np.zeros(n), np.zeros(n)
    for j in range(n - 1, -1, -1):
        c[j] = z[j] - mu[j] * c[j + 1]
        b[j] = (y[j + 1] - y[j]) / h[j] - h[j] * (c[j + 1] + 2 * c[j]) / 3
        d[j] = (c[j + 1] - c[j]) / (3 * h[j])
    at = np.clip(np.searchsorted(x, xq) - 1, 0, n - 1)
    t = xq - x[at]
    return y[at] + b[at] * t + c[at] * t**2 + d[at] * t**3


@posted(lambda draw: (np.arange(draw.n / 1), draw.normal(draw.n), 2.5))
def divided_differences(xs, ys, x):
    n = len(xs)
    F = np.zeros([n, n])
    F[:, 0] = ys
    for j in range(1, n):
        for i in range(n - j):
            F[i][j] = (F[i + 1][j - 1] - F[i][j - 1]) / (xs[i + j] - xs[i])
    p = F[0][0]
    w = 1
    for j in range(1, n):
        w *= x - xs[j - 1]
        p += F[0][j] * w
    return p, F[0]


@posted(lambda draw: (draw.uniform(0, 1, 5), draw.normal(draw.n, 2)))
def de_casteljau(t, points):
    out = np.empty((len(t), points.shape[1]))
    for i, s in enumerate(t):
        Q = points.copy()
        for r in range(1, len(points)):
            for j in range(len(points) - r):
                Q[j] = (1 - s) * Q[j] + s * Q[j + 1]
        out[i] = Q[0]
    return out


@posted(lambda draw: (np.linspace(-2, 0, draw.n), np.linspace(3, 4, draw.n)))
def bisection_on_a_grid(a, b, n=40):
    def f(x):
        return x**3 - 2 * x - 5

    fa = f(a)
    for _ in range(n):
        m = 0.5 * (a + b)
        fm = f(m)
        left = np.sign(fm) == np.sign(fa)
        a = np.where(left, m, a)
        fa = np.where(left, fm, fa)
        b = np.where(left, b, m)
    return 0.5 * (a + b)


@posted(lambda draw: (square(draw, 5),))
def lu_doolittle(A):
    n = len(A)
    L = np.eye(n)
    U = np.zeros((n, n))
    for i in range(n):
        for k in range(i, n):
            U[i, k] = A[i, k] - np.dot(L[i, :i], U[:i, k])
        for k in range(i + 1, n):
            s = 0
            for j in range(i):
                s += L[k, j] * U[j, i]
            L[k, i] = (A[k, i] - s) / U[i, i]
    return L, U


@posted(lambda draw: (square(draw), draw.normal(draw.n)))
def gauss_with_pivots(A, b):
    n = len(b)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(A[k:, k]))
        A[[k, p]] = A[[p, k]]
        b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            A[i, k:] -= f * A[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - np.dot(A[i, i + 1 :], x[i + 1 :])) / A[i, i]
    return x


@posted(lambda draw: (square(draw), 4))
def qr_iteration(A, steps):
    A = A + A.T
    n = A.shape[0]
    for _ in range(steps):
        Q = np.zeros((n, n))
        R = np.zeros((n, n))
        for j in range(n):
            v = A[:, j].copy()
            for i in range(j):
                R[i, j] = Q[:, i] @ A[:, j]
                v -= R[i, j] * Q[:, i]
            R[j, j] = np.linalg.norm(v)
            Q[:, j] = v / R[j, j]
        A = R @ Q
    return np.diag(A)


@posted(lambda draw: (draw.normal(8 if draw.n < 10 else 32), draw.normal(8 if draw.n < 10 else 32)))
def butterflies(re, im):
    n = len(re)
    re, im = re.copy(), im.copy()
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    length = 2
    while length <= n:
        angle = -2 * np.pi / length
        for start in range(0, n, length):
            for k in range(length // 2):
                wr, wi = math.cos(angle * k), math.sin(angle * k)
                a, b = start + k, start + k + length // 2
                tr = wr * re[b] - wi * im[b]
                ti = wr * im[b] + wi * re[b]
                re[b] = re[a] - tr
                im[b] = im[a] - ti
                re[a] += tr
                im[a] += ti
        length *= 2
    return re, im


# ---- equations of motion -----------------------------------------------------------------------------


@posted(lambda draw: (draw.normal(2), draw.n))
def pendulum(y0, steps, dt=0.01):
    def f(y):
        theta, omega = y
        return np.array([omega, -GRAVITY * np.sin(theta)])

    ys = np.zeros((steps + 1, 2))
    ys[0] = y0
    y = y0
    for i in range(steps):
        k1 = f(y)
        k2 = f(y + dt / 2 * k1)
        k3 = f(y + dt / 2 * k2)
        k4 = f(y + dt * k3)
        y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        ys[i + 1] = y
    return ys


@posted(lambda draw: (0.0, 1.0 + draw.n % 2, draw.n))
def euler_in_lists(t0, t1, n):
    h = (t1 - t0) / n
    t, y = [t0], [1.0]
    for i in range(n):
        y.append(y[i] + h * (t[i] - y[i] ** 2))
        t.append(t[i] + h)
    return np.array(t), np.array(y)


@posted(lambda draw: (0.3, 0.1, np.array([0.99, 0.01, 0.0]), draw.n))
def epidemic(beta, gamma, y0, days):
    S, I, R = y0
    history = []
    for _ in range(days):
        infected = beta * S * I
        recovered = gamma * I
        S, I, R = S - infected, I + infected - recovered, R + recovered
        history.append([S, I, R])
    return np.array(history)


@posted(lambda draw: (draw.normal(draw.n, 2), draw.uniform(1, 2, draw.n), 4))
def bodies(position, mass, steps):
    n = len(position)
    velocity = np.zeros_like(position)
    for _ in range(steps):
        for i in range(n):
            acceleration = np.zeros(position.shape[1])
            for j in range(n):
                r = position[j] - position[i]
                acceleration += mass[j] * r / (np.linalg.norm(r) ** 3 + 0.1)
            velocity[i] += acceleration * 0.01
        position += velocity * 0.01
    return velocity


class Particle:
    def __init__(self, x, v, m=1.0):
        self.x = x
        self.v = v
        self.m = m

    def force(self, k):
        return -k * self.x

    def step(self, dt, k):
        self.v = self.v + self.force(k) / self.m * dt
        self.x = self.x + self.v * dt


@posted(lambda draw: (draw.normal(draw.n), draw.normal(draw.n), 3 * draw.n))
def oscillating_particles(x, v, n):
    p = Particle(x, v, m=2.0)
    energy = np.zeros(n)
    for i in range(n):
        p.step(0.01, 3.0)
        energy[i] = 0.5 * p.m * np.sum(p.v**2)
    return p.x, p.v, energy


@dataclass
class Controller:
    kp: float
    ki: float
    kd: float
    integral: float = 0.0
    previous: float = 0.0

    def update(self, error, dt):
        self.integral += error * dt
        slope = (error - self.previous) / dt
        self.previous = error
        return self.kp * error + self.ki * self.integral + self.kd * slope


@posted(lambda draw: (1.5, 4 * draw.n))
def control(target, n):
    pid = Controller(1.2, 0.5, 0.05)
    y = 0.0
    ys = np.zeros(n)
    for k in range(n):
        u = pid.update(target - y, 0.1)
        y += 0.1 * (-y + u)
        ys[k] = y
    return ys


@posted(lambda draw: (draw.normal(draw.n, draw.n), 5))
def three_levels_of_a_wave(u, steps):
    before = u.copy()
    after = np.zeros_like(u)
    for _ in range(steps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        after[1:-1, 1:-1] = u[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.25 * around
        before, u, after = u, after, before
        u[0, :] = u[-1, :] = 0
        u[:, 0] = u[:, -1] = 0
    return u


@posted(lambda draw: (draw.n, 6))
def implicit_heat(n, steps, alpha=0.1):
    u = np.zeros(n)
    u[n // 4 : n // 2] = 1
    diagonal = 1 + 2 * alpha
    for _ in range(steps):
        c, d = np.zeros(n - 1), np.zeros(n)
        c[0] = -alpha / diagonal
        d[0] = u[0] / diagonal
        for i in range(1, n - 1):
            m = diagonal + alpha * c[i - 1]
            c[i] = -alpha / m
            d[i] = (u[i] + alpha * d[i - 1]) / m
        u[-1] = (u[-1] + alpha * d[n - 2]) / (diagonal + alpha * c[n - 2])
        for i in range(n - 2, -1, -1):
            u[i] = d[i] - c[i] * u[i + 1]
    return u


# ---- chance ------------------------------------------------------------------------------------------


@posted(lambda draw: (draw.uniform(0, 1, 20 * draw.n, 2),))
def darts(points):
    inside = 0
    for x, y in points:
        inside += (x**2 + y**2) <= 1.0
    return 4 * inside / len(points)


@posted(lambda draw: (draw.uniform(0, 1, 2, 10 * draw.n), 0.4))
def metropolis(u, step):
    x = 0.0
    accepted = 0
    xs = np.zeros(u.shape[1])
    for k in range(u.shape[1]):
        proposal = x + step * (2 * u[0, k] - 1)
        ok = u[1, k] < min(1.0, np.exp(0.5 * (x * x - proposal * proposal)))
        x = np.where(ok, proposal, x)
        accepted += ok
        xs[k] = x
    return xs.mean(), accepted / len(xs)


@posted(lambda draw: (draw.uniform(0, 2, draw.n), draw.uniform(0, 1.5, draw.n)))
def queue(between, service):
    arrive = np.cumsum(between)
    n = len(arrive)
    start, finish = np.zeros(n), np.zeros(n)
    for i in range(n):
        if i == 0:
            start[i] = arrive[i]
        else:
            start[i] = max(arrive[i], finish[i - 1])
        finish[i] = start[i] + service[i]
    wait = start - arrive
    return wait.mean(), np.max(wait), finish[-1] - arrive[0]


@posted(lambda draw: (draw.normal(5, draw.n), 100.0, 0.05))
def asian_option(Z, start, rate, sigma=0.2, years=1.0):
    paths, steps = Z.shape
    dt = years / steps
    S = np.empty((paths, steps + 1))
    S[:, 0] = start
    for t in range(1, steps + 1):
        drift = (rate - 0.5 * sigma**2) * dt
        S[:, t] = S[:, t - 1] * np.exp(drift + sigma * np.sqrt(dt) * Z[:, t - 1])
    payoff = np.maximum(S[:, 1:].mean(axis=1) - start, 0)
    return np.exp(-rate * years) * payoff.mean(), payoff.std() / np.sqrt(paths)


# ---- graphs, sequences, dynamic programming ----------------------------------------------------------


@posted(lambda draw: (draw.uniform(1, 20, draw.n, draw.n), draw.n // 2))
def bellman_ford(w, source):
    n = w.shape[0]
    distance = np.full(n, np.inf)
    distance[source] = 0
    for _ in range(n - 1):
        for u in range(n):
            for v in range(n):
                distance[v] = min(distance[v], distance[u] + w[u, v])
    return distance


@posted(lambda draw: (draw.uniform(0, 1, draw.n, draw.n) < 0.2, 1))
def levels(A, start):
    n = len(A)
    level = -np.ones(n, dtype=int)
    level[start] = 0
    frontier = np.zeros(n, bool)
    frontier[start] = True
    for d in range(1, n):
        new = A[frontier].any(axis=0) & (level < 0)
        level[new] = d
        frontier = new
    return level


@posted(lambda draw: (draw.integers(4, draw.n), draw.integers(4, draw.n + 3)))
def edit_distance(s, t):
    previous = np.arange(len(t) + 1)
    for i, c in enumerate(s):
        current = np.empty_like(previous)
        current[0] = i + 1
        for j, e in enumerate(t):
            cost = int(c != e)
            current[j + 1] = min(previous[j + 1] + 1, current[j] + 1, previous[j] + cost)
        previous = current
    return previous[-1]


@posted(lambda draw: (draw.integers(4, draw.n), draw.integers(4, draw.n + 3)))
def common_subsequence(a, b):
    n, m = len(a), len(b)
    L = np.zeros((n + 1, m + 1), dtype=np.int32)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            same = a[i - 1] == b[j - 1]
            L[i, j] = np.where(same, L[i - 1, j - 1] + 1, max(L[i - 1, j], L[i, j - 1]))
    return L[n, m]


@posted(lambda draw: (1 + draw.integers(30, draw.n),))
def matrix_chain(p):
    n = len(p) - 1
    m = np.zeros((n, n))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i, j] = np.inf
            for k in range(i, j):
                q = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                m[i, j] = min(m[i, j], q)
    return m[0, n - 1]


@posted(lambda draw: (1 + draw.integers(9, draw.n), draw.integers(50, draw.n), 30))
def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=int)
    for w, v in zip(weights, values):  # noqa: B905
        new = best.copy()
        new[w:] = np.maximum(best[w:], best[:-w] + v)
        best = new
    return best[-1]


@posted(lambda draw: (draw.normal(draw.n),))
def largest_sum(x):
    best = current = x[0]
    for v in x[1:]:
        current = max(v, current + v)
        best = max(best, current)
    return best


@posted(lambda draw: (draw.integers(100, draw.n),))
def bubble_sort(a):
    n = len(a)
    for i in range(n):
        for j in range(n - i - 1):
            a[j], a[j + 1] = min(a[j], a[j + 1]), max(a[j], a[j + 1])


@posted(lambda draw: (np.sort(draw.normal(draw.n)), 0.3, 6))
def binary_search(a, target, steps):
    lo, hi = 0, len(a)
    for _ in range(steps):
        mid = (lo + hi) // 2
        less = a[mid] < target
        lo = np.where(less, mid + 1, lo)
        hi = np.where(less, hi, mid)
    return lo


@posted(lambda draw: (draw.uniform(0, 1, 4, 4), draw.uniform(0, 1, 4, 5), draw.integers(5, draw.n)))
def viterbi(A, B, observed):
    n, T = A.shape[0], len(observed)
    delta = np.log(np.ones(n) / n) + np.log(B[:, observed[0]])
    psi = np.zeros((T, n), dtype=int)
    for t in range(1, T):
        moved = delta[:, None] + np.log(A)
        psi[t] = moved.argmax(axis=0)
        delta = moved.max(axis=0) + np.log(B[:, observed[t]])
    path = np.zeros(T, dtype=int)
    path[T - 1] = delta.argmax()
    for t in range(T - 2, -1, -1):
        path[t] = psi[t + 1, path[t + 1]]
    return path


@posted(lambda draw: (draw.n,))
def spiral(n):
    m = np.zeros((n, n), int)
    top, bottom, left, right = 0, n - 1, 0, n - 1
    k = 0
    while top <= bottom and left <= right:
        for j in range(left, right + 1):
            m[top, j] = k
            k += 1
        top += 1
        for i in range(top, bottom + 1):
            m[i, right] = k
            k += 1
        right -= 1
        for j in range(right, left - 1, -1):
            m[bottom, j] = k
            k += 1
        bottom -= 1
        for i in range(bottom, top - 1, -1):
            m[i, left] = k
            k += 1
        left += 1
    return m
