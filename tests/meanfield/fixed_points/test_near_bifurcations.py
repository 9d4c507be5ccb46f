"""Fixed points at every distance from pitchforks, folds and transcritical points that are placed exactly.

Agents say the first word with probability a_k if they have heard it k times among the last n words. Then the response
is the Bernstein polynomial f(Q) = Σ_k C(n, k) a_k Q^k (1 - Q)^{n - k}, and any polynomial f(Q) - Q with chosen roots,
times a small constant, has all a_k in [0, 1]. Rational arithmetic counts the fixed points of the table as rounded.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from scipy.optimize import brentq

import meanfield
from _battery import memories
from _policies import majority_policy
from meanfield._fixed_points import points as module
from meanfield.toolbox import space_of

pytestmark = pytest.mark.usefixtures("unchecked_types")
BITS = 200
ROUNDING = 1e-14  # of g; stretches of logit Q that are not resolved have |g| below twice that, up to errors of g
HALF = Fraction(1, 2)


def majority(n, distance):
    """a_k of the majority of n words heard, a coin where there is none, near its pitchfork.

    With errors e its f'(1/2) is (1 - 2e) m C(m - 1, (m - 1)/2) / 2^{m - 1}, where m is n or n - 1, the odd one.
    """
    m = n - 1 + n % 2
    error = HALF - Fraction(2 ** (m - 2), m * math.comb(m - 1, m // 2)) - distance
    return [(error, HALF, 1 - error)[1 + int(np.sign(2 * k - n))] for k in range(n + 1)]


def planted(n, part, *factors):
    """a_k of f(Q) = Q + c D(Q), with D the product of polynomials in Q, and c a part of the largest possible."""
    D = math.prod((flint.fmpq_poly(factor) for factor in factors), start=flint.fmpq_poly([1])).coeffs()
    b = [sum(d * math.comb(k, j) / math.comb(n, j) for j, d in enumerate(D)) for k in range(n + 1)]
    assert len(D) <= n + 1 and b[0] >= 0 >= b[n]
    c = part * min((flint.fmpq(k, n) if one < 0 else 1 - flint.fmpq(k, n)) / abs(one) for k, one in enumerate(b) if one)
    return [Fraction(int(one.p), int(one.q)) for one in (flint.fmpq(k, n) + c * one for k, one in enumerate(b))]


def family(random, decades, fraction):
    """(name, H, a_k) for a random fraction of all kinds of bifurcations, memories, distances and sides."""
    for H, decade, side in itertools.product(range(1, 7), decades, (1, -1)):
        near = flint.fmpq(side, 10**decade)
        r, t, part = (flint.fmpq(int(random.integers(*ends)), 1000) for ends in ((150, 500), (550, 950), (300, 999)))
        r, t = (r, t) if random.random() < 0.5 else (1 - r, 1 - t)
        more = [[flint.fmpq(1 + int(random.integers(20)), 10), 1] for _ in range(int(random.integers(7)))]  # no root
        pair, wider = [r * r - near, -2 * r, 1], [r * r - 4 * near, -2 * r, 1]  # two roots close to r, or none
        factors = {
            "transcritical": (2, [0, 1], [near, -1]),
            "fold": (3, pair, [t, -1]),
            "two roots": (3, [-r, 1], [-r - near, 1], [t, -1]),
            "cusp": (3, pair, [r, -1]),
            "fold between exact corners": (4, [0, 1], [-1, 1], pair),
            "five roots": (5, pair, wider, [r, -1]),
        }
        kinds = {kind: (H, *some, *more[: H - degree]) for kind, (degree, *some) in factors.items() if degree <= H}
        kinds |= {f"pitchfork of {n}": (n,) for n in range(3, H + 1)}
        if side < 0 and H == 1:
            kinds["transcritical"] = (1, [0, near])
        for kind, (n, *some) in kinds.items():
            if random.random() < fraction:
                name = f"{kind}, H = {H}, {'beyond' if side > 0 else 'before'} by 1e-{decade}"
                yield name, H, planted(n, part, *some) if some else majority(n, Fraction(side, 10**decade))


def policy_of(H, a):
    """The policy of the last words heard, with each probability rounded; agents who heard fewer toss a coin."""
    n = len(a) - 1
    partner = memories(2, H)[1][:, :n]
    count = np.where((partner < 0).any(1), n + 1, (partner == 0).sum(1))
    return meanfield.make_policy(np.array([[float(one), float(1 - one)] for one in [*a, HALF]])[count], ["a", "b"])


class Exact:
    """The fixed points 0 < Q < 1 for probabilities a_k and 1 - a_k as they are rounded."""

    def __init__(self, a):
        n = len(a) - 1
        Q, P = flint.fmpq_poly([0, 1]), flint.fmpq_poly([1, -1])
        table = [[flint.fmpq(*float(one).as_integer_ratio()) for one in side] for side in (a, [1 - one for one in a])]
        said = [sum(b * math.comb(n, k) * Q**k * P ** (n - k) for k, b in enumerate(side)) for side in table]
        found: Any = (said[0] * P - said[1] * Q).numer().complex_roots()
        real = [flint.arb(root.real) for root, _ in found if root.imag == 0]
        self.logits = sorted((root / (1 - root)).log() for root in real if 0 < root < 1)
        self._said = [flint.arb_poly(one) for one in said]

    def g(self, logit):
        Q = 1 / (1 + (-flint.arb(logit)).exp())
        return float((self._said[0](Q) / self._said[1](Q)).log() - logit)

    def slope(self, logit):
        """dg/dl."""
        Q = 1 / (1 + (-flint.arb(logit)).exp())
        first, second = (one.derivative()(Q) / one(Q) for one in self._said)
        return float(Q * (1 - Q) * (first - second) - 1)


def eigenvalue(slope, n):
    """The leading λ of μ = 1 + λ, μ^n = f'(Q) (μ^{n-1} + … + 1)/n: a word that is heard counts n interactions long."""
    return np.roots([1, *[-(1 + slope) / n] * n]).real.max() - 1


def solved(policy):
    """The fixed points inside, by rising logit, the number of those at exact corners, and the roots of g."""
    search, kept = module.interior_roots, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "interior_roots", lambda given: kept.append(search(given)) or kept[0])
        points = meanfield.fixed_points(policy)
    (((found, _),),) = kept
    inner = points.isel(fixed_point=np.flatnonzero(points["branch"].values == 0)[::-1])
    assert inner.sizes["fixed_point"] == len(found.roots)
    assert ("Not resolved" in points.attrs["completeness"]) == bool(found.unresolved)
    assert not inner["stable"].values[found.slopes == 0].any()
    return inner, points.sizes["fixed_point"] - len(found.roots), found


def check(H, a):
    """Compare all fixed points with the exact ones; whether all are told apart."""
    exact, n = Exact(a), len(a) - 1
    inner, corners, found = solved(policy_of(H, a))
    assert corners == (a[0] == 0) + (a[-1] == 1)
    hidden = []
    for stretch in found.unresolved:
        inside = [logit for logit in exact.logits if stretch.left <= float(logit) <= stretch.right]
        assert stretch.odd is None or len(inside) % 2 == stretch.odd
        line = np.linspace(stretch.left, stretch.right, 41)
        assert max(abs(exact.g(logit)) for logit in line) < 3 * ROUNDING, "g can be told from 0"
        slopes = np.array([exact.slope(logit) for logit in line])
        assert not stretch.odd or np.ptp(slopes) > 0.4 * np.abs(slopes).max(), "this is a simple root"
        hidden += inside
    simple = found.slopes != 0
    told = [logit for logit in exact.logits if logit not in hidden]
    columns = [inner[name].values[simple] for name in ("stability", "eigenvalue", "eigenvalue_error")]
    for logit, place, error, status, leading, bound in zip(
        told, found.roots[simple], found.errors[simple], *columns, strict=True
    ):
        slope = exact.slope(logit)
        assert abs(float(logit - place)) <= error + 1e-15 * abs(place)
        assert error < 3 * ROUNDING / abs(slope) + 1e-12
        assert abs(leading - eigenvalue(slope, n)) <= bound + 1e-14
        assert status == ("unstable" if slope > 0 else "stable") or (status == "marginal" and abs(slope) < 1e-6)
    return not found.unresolved


def check_all(seed, decades, fraction):
    resolved = []
    for name, *case in family(np.random.default_rng(seed), decades, fraction):
        try:
            with flint.ctx.workprec(BITS):
                resolved.append(check(*case))
        except Exception as error:
            error.add_note(name)
            raise
    return resolved


def test_fixed_points_close_to_bifurcations_are_counted_or_not_resolved():
    resolved = check_all(0, range(3, 16, 2), 0.02)
    assert len(resolved) > 10 and 0.4 < np.mean(resolved) < 0.8


@pytest.mark.slow
def test_every_bifurcation_at_every_distance():
    assert len(check_all(1, range(3, 17), 1.0)) > 800


@pytest.mark.parametrize("rounding", [1e-9, 1e-18])
def test_a_wrong_error_of_g_is_noticed(monkeypatch, rounding):
    """A control: a larger one leaves unresolved what float64 tells, a smaller one takes rounding for fixed points."""
    monkeypatch.setattr(module, "ROUNDING", rounding)
    with pytest.raises(AssertionError):
        check_all(0, range(9, 13), 0.2)


def share_said(policy, logit):
    """log(f_0/f_1) of agents who hear the first word with probability Q, by elimination in many digits."""
    space, q = space_of(policy), policy["q"].values
    n = space.n_full
    full = q[space.offset(space.memory_length) :].tolist()
    rows = [[flint.arb(one) / (flint.arb(a) + b) for one in (a, b)] for a, b in full]
    Q = [1 / (1 + (-logit).exp()), 1 / (1 + logit.exp())]
    balance = [[flint.arb(-(i == j)) for i in range(n)] for j in range(n)]
    for i, own, partner in itertools.product(range(n), (0, 1), (0, 1)):
        balance[(4 * i + 2 * own + partner) % n][i] += rows[i][own] * Q[partner]
    balance[-1] = [flint.arb(1)] * n
    p = flint.arb_mat(balance).solve(flint.arb_mat([[0]] * (n - 1) + [[1]]))
    said = [sum((p[i, 0] * row[w] for i, row in enumerate(rows)), flint.arb(0)) for w in (0, 1)]
    return (said[0] / said[1]).log()


def all_words_majority(H, error):
    own, partner = memories(2, H)
    lead = np.sign((own == 0).sum(1) + (partner == 0).sum(1) - (own == 1).sum(1) - (partner == 1).sum(1))
    return meanfield.make_policy(np.array([[error, 1 - error], [0.5, 0.5], [1 - error, error]])[1 + lead], ["a", "b"])


@pytest.mark.slow
@pytest.mark.parametrize("H", [2, 3])
def test_majority_of_own_and_heard_words_close_to_its_pitchfork(H):
    """Agents who follow their own words too: the sign of g beside 1/2 tells the side of the pitchfork."""

    def rises(error):
        beside = flint.arb("1e-30")
        return float((share_said(all_words_majority(H, error), beside) - beside) / beside)

    with flint.ctx.workprec(BITS):
        critical: Any = brentq(rises, 0.01, 0.4, xtol=1e-16)
        for decade, side in itertools.product(range(3, 15), (1, -1)):
            policy = all_words_majority(H, critical + side * 10.0**-decade)
            inner, _, found = solved(policy)
            if found.unresolved:
                assert decade > 9 and len(found.roots) == 1
                continue
            assert len(found.roots) == (1 if side > 0 else 3)
            assert (np.sign(found.slopes) == [[-1], [-1, 1, -1]][side < 0]).all()
            for place, error, slope in zip(found.roots, found.errors, found.slopes, strict=True):
                for end in (place - error, place + error):
                    assert (float(share_said(policy, flint.arb(end)) - end) > 0) == ((end > place) == (slope > 0))
            status = ["stable"] if side > 0 else ["stable", "unstable", "stable"]
            assert decade > 6 or inner["stability"].values.tolist() == status


@pytest.mark.parametrize("H", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_two_fixed_points_vanish_in_the_fold_of_a_committed_minority(H):
    policy = majority_policy(H, 0.97)
    fold = meanfield.critical_mass(policy, word="b")["critical_mass"].item()
    for decade, side in itertools.product(range(3, 12), (1, -1)):
        population = meanfield.Population(policy, committed={"b": fold + side * 10.0**-decade})
        stability = meanfield.fixed_points(population)["stability"].values.tolist()
        assert stability == (["stable"] if side > 0 else ["stable", "unstable", "stable"])
