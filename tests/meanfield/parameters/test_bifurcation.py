"""Bifurcation diagrams and critical masses against closed forms, single landscapes and the rate equation itself."""

import itertools

import numpy as np
import pytest

import meanfield
from _policies import majority_policy, random_policy, relabelled
from meanfield import Population
from meanfield._fixed_points.response import responses
from meanfield._population.drift import mixture_drift, mixture_word_share


def heard_last(alpha, beta):
    """H = 1: say the first word with probability alpha, with beta more if it was heard last; f(Q) = alpha + beta Q."""
    first = np.array([0.5, alpha + beta, alpha, alpha + beta, alpha])
    return meanfield.make_policy(first, ["a", "b"])


def without_memory(share):
    """H = 3: always the first word with this probability."""
    return meanfield.make_policy(np.full(85, share), ["a", "b"])


def weighted(seed, length, strength):
    """Likes the words in its memory, with random weights and a bias; strong habits are exact zeros and ones."""
    random, space = np.random.default_rng(seed), meanfield.MemorySpace(2, length)
    weight, bias = random.uniform(0, 1, (length, 2)), 0.3 * random.standard_normal()
    field = np.array([bias + (weight[-len(m) :] * (1 - 2 * np.array(m))).sum() if m else bias for m in memories(space)])
    first = 1 / (1 + np.exp(-strength * field))
    return meanfield.make_policy(np.where(first > 0.97, 1.0, np.where(first < 0.03, 0.0, first)), ["a", "b"])


def memories(space):
    return [space.memory(i) for i in range(space.n_states)]


def only_if_all(length=2):
    """Say the first word only if one has heard nothing else: f(Q) = Q^H."""
    space = meanfield.MemorySpace(2, length)
    return meanfield.make_policy(np.array([float(all(b == 0 for _, b in m)) for m in memories(space)]), ["a", "b"])


def with_parameter(population, parameter, word, c):
    return population.with_fraction(c) if parameter == "fraction" else population.with_committed(word, c)


def rising(shares):
    return np.sort(np.asarray(shares))


def arcs_of(diagram):
    return [diagram.isel(point=diagram["arc"].values == arc) for arc in np.unique(diagram["arc"])]


# Closed forms


@pytest.mark.parametrize("word", ["a", "b"])
def test_line_has_no_fold_and_its_closed_form(word):
    """c(Q) = (Q - α - βQ) / (e - α - βQ), with e = 1 for agents committed to the first word, else 0."""
    alpha, beta = 0.15, 0.6
    diagram = meanfield.bifurcation(heard_last(alpha, beta), word=word)
    Q = diagram["word_share"].values[:, 0]
    said = alpha + beta * Q
    np.testing.assert_allclose(diagram["parameter"], (Q - said) / (float(word == "a") - said), atol=1e-12)
    # ε = δQ obeys dε/dt = ((1 - c) β - 1) ε
    np.testing.assert_allclose(diagram["eigenvalue"], (1 - diagram["parameter"]) * beta - 1, atol=2e-5)
    assert not diagram["fold"].any()
    assert np.unique(diagram["arc"]).tolist() == [0]
    assert rising(diagram["parameter"])[[0, -1]] == pytest.approx([0, 1], abs=1e-12)
    critical = meanfield.critical_mass(heard_last(alpha, beta), word=word)
    assert critical.attrs["transition"] == "none"
    assert np.isnan(critical["critical_mass"])
    assert critical.sizes["fold"] == 0
    # Those who are not committed say the word in one half where f(Q) = 1/2, and there Q = (1 - c)/2 + c
    turn = 2 * (0.5 - alpha) / beta - 1 if word == "a" else 1 - 2 * (0.5 - alpha) / beta
    where = f"from {turn:.3f} on" if turn > 0 else "at no fraction"
    assert critical.attrs["reason"].endswith(f"never vanishes; most others say the other word {where}")


def folds_of(top, bottom):
    """(c, Q) at the extrema of the rational function top/bottom of Q in (0, 1) with 0 < c < 1."""
    turning = (top.deriv() * bottom - top * bottom.deriv()).r
    real = turning[np.abs(turning.imag) < 1e-9].real
    shares = real[(real > 0) & (real < 1)]
    c = top(shares) / bottom(shares)
    return [(c[i], shares[i]) for i in np.argsort(shares) if 0 < c[i] < 1]


SHARE = np.poly1d([1, 0])


def majority_response(p):
    """f(Q) = (1 - p) + (2p - 1)(3Q² - 2Q³)."""
    return np.poly1d([-2 * (2 * p - 1), 3 * (2 * p - 1), 0, 1 - p])


@pytest.mark.parametrize(("p", "other"), [(0.95, 0.0), (1.0, 0.0), (0.95, 0.03)])
def test_fold_of_the_majority_rule_is_that_of_its_polynomial(p, other):
    """Beside b committed to the other word Q = (1 - b - c) f + c, so that c(Q) = (Q - (1 - b) f) / (1 - f)."""
    f = majority_response(p)
    ((c, share),) = folds_of(SHARE - (1 - other) * f, 1 - f)
    population = Population(majority_policy(3, p), committed={"b": other})
    critical = meanfield.critical_mass(population, word="a")
    assert critical.attrs["transition"] == "fold"
    assert critical["critical_mass"].item() == pytest.approx(c, abs=1e-12)
    assert critical["fold_parameter"].values == pytest.approx([c], abs=1e-12)
    assert critical["word_share"].values == pytest.approx([share, 1 - share], abs=1e-7)
    old = meanfield.fixed_points(population)["word_share"].values[-1]
    np.testing.assert_allclose(critical["old_word_share"], old, atol=1e-12)


@pytest.mark.parametrize("fractions", [[0.9, 0.1], [0.0, 1.0]])
def test_fraction_of_a_second_model_has_its_closed_form(fractions):
    """Agents who say a with probability v whatever they remember: c(Q) = (Q - f) / (v - f), for any fractions."""
    f, v = majority_response(0.97), 0.8
    ((c, share),) = folds_of(SHARE - f, v - f)
    population = Population([majority_policy(3, 0.97), without_memory(v)], fractions=fractions)
    critical = meanfield.critical_mass(population, parameter="fraction", old="b")
    assert critical.attrs["transition"] == "fold"
    assert critical["critical_mass"].item() == pytest.approx(c, abs=1e-12)
    assert critical["word_share"].values[0] == pytest.approx(share, abs=1e-7)


def test_state_that_merges_with_the_new_consensus():
    """f(Q) = Q²: Q = c / (1 - c) up to c = 1/2, where it takes over the consensus on a, which was unstable."""
    critical = meanfield.critical_mass(only_if_all(), word="a")
    assert critical.attrs["transition"] == "continuous"
    assert critical["critical_mass"].item() == pytest.approx(0.5, abs=1e-9)
    assert critical.sizes["fold"] == 0
    diagram = meanfield.bifurcation(only_if_all(), word="a")
    c, Q = diagram["parameter"].values, diagram["word_share"].values[:, 0]
    curve, corner = diagram["branch"].values == 0, diagram["branch"].values == -1
    np.testing.assert_allclose(Q[curve], c[curve] / (1 - c[curve]), atol=1e-12)
    assert (Q[corner] == 1).all()
    clear = np.abs(c - 0.5) > 1e-3
    assert diagram["stable"].values[curve & clear].all()
    assert (diagram["stable"].values == (c > 0.5))[corner & clear].all()


def test_each_closed_class_has_its_diagram():
    """Agents who repeat their own last word: f is 1 in one class and 0 in the other, which gives c(Q) = Q."""
    repeat_own = meanfield.make_policy(np.array([0.5, 1.0, 1.0, 0.0, 0.0]), ["a", "b"])
    diagram = meanfield.bifurcation(repeat_own, word="a")
    c, Q, branch = (diagram[name].values for name in ("parameter", "word_share", "branch"))
    mixed = branch >= 0
    assert len(set(branch[mixed])) == 1
    np.testing.assert_allclose(Q[mixed, 0], c[mixed], atol=1e-15)
    assert (Q[~mixed, 0] == 1).all()
    assert set(diagram["stability"].values) == {"marginal"}
    critical = meanfield.critical_mass(repeat_own, word="a")
    assert (critical.attrs["transition"], critical.sizes["fold"]) == ("none", 0)
    assert critical.attrs["reason"].endswith("most others say the other word at no fraction")


@pytest.mark.parametrize(
    ("policy", "word", "reason"),
    [
        (majority_policy(3, 1.0), "a", "the old state is a consensus that stays one at every fraction"),
        (
            meanfield.make_policy(np.array([0.5, 0.9, 0.8, 0.7, 0.6]), ["a", "b"]),
            "b",
            "without the newcomers there is no attractor at which most say 'b'",
        ),
    ],
)
def test_an_old_state_that_never_vanishes_or_is_not_there_is_said(policy, word, reason):
    critical = meanfield.critical_mass(policy, word=word, old=word)
    assert np.isnan(critical["critical_mass"]) and critical.attrs["reason"] == reason


# Every point and every slice of the diagram

CASES = {
    "majority": (Population(majority_policy(3, 0.95)), "committed", "a"),
    "two policies": (Population([weighted(5, 3, 2.0), weighted(25, 3, 2.0)], fractions=[0.6, 0.4]), "committed", "a"),
    "two policies, others committed": (
        Population([weighted(1, 2, 2.0), weighted(21, 2, 3.0)], fractions=[0.4, 0.6], committed={"b": 0.03}),
        "committed",
        "a",
    ),
    "fraction, committed": (
        Population([weighted(5, 3, 2.0), weighted(25, 3, 2.0)], fractions=[0.5, 0.5], committed={"b": 0.02}),
        "fraction",
        None,
    ),
}


SPACING = 0.07


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("name", CASES)
def test_diagrams_hold_all_fixed_points_and_no_others(name):
    """Each point is a fixed point of the class of its branch, and slices are the landscapes of their parameter."""
    population, parameter, word = CASES[name]
    diagram = meanfield.bifurcation(population, parameter=parameter, word=word, spacing=SPACING)
    curves, checked = responses(population.mixture), 0
    columns = [diagram[name].values for name in ("parameter", "word_share", "branch")]
    for c, Q, branch in zip(*columns, strict=True):
        if branch >= 0 and c <= 0.95:
            at = with_parameter(population, parameter, word, c)
            assert np.abs(mixture_drift(curves[branch].composition(Q)[None], at.mixture)).max() < 1e-10
            checked += 1
    assert checked > 8
    for arc in arcs_of(diagram):
        steps = np.hypot(np.diff(arc["parameter"]), np.diff(arc["word_share"].values[:, 0]))
        assert steps.max() < 1.5 * SPACING
        if arc["branch"].values[0] >= 0:
            stability_changes_at_folds_only(arc)
    for c in (0.011, 0.2):
        landscape = meanfield.fixed_points(with_parameter(population, parameter, word, c))["word_share"].values[:, 0]
        found = crossings(diagram, c)
        assert len(found) == len(landscape)
        for (low, high), share in zip(found, landscape, strict=True):
            assert low - 1e-12 <= share <= high + 1e-12


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("name", CASES)
def test_points_are_in_the_landscape_at_their_parameter(name):
    """With its eigenvalues, and as stable."""
    population, parameter, word = CASES[name]
    diagram = meanfield.bifurcation(population, parameter=parameter, word=word, spacing=SPACING)
    inner = np.flatnonzero(~diagram["fold"].values & (diagram["parameter"].values < 0.95))
    for i in inner[:: len(inner) // 6]:
        point = diagram.isel(point=i)
        landscape = meanfield.fixed_points(with_parameter(population, parameter, word, point["parameter"].item()))
        distance = np.abs(landscape["word_share"].values[:, 0] - point["word_share"].values[0])
        same = landscape.isel(fixed_point=int(np.argmin(distance)))
        assert distance.min() < 1e-9
        assert same["eigenvalue"].item() == pytest.approx(point["eigenvalue"].item(), abs=1e-6)
        assert same["stability"].item() == point["stability"].item()


def stability_changes_at_folds_only(arc):
    """A saddle-node has a zero eigenvalue, and the two states that meet there are a stable and an unstable one."""
    status, fold = arc["stability"].values, arc["fold"].values
    assert (np.abs(arc["eigenvalue"].values[fold]) < 1e-7).all()
    assert (status[~fold] != "marginal").all()
    for i in range(len(status) - 1):
        assert fold[i] or fold[i + 1] or status[i] == status[i + 1]
    for i in np.flatnonzero(fold):
        assert {status[i - 1], status[i + 1]} == {"stable", "unstable"}


def crossings(diagram, c):
    """Intervals of the first word's share in which the diagram passes the parameter c, by falling share."""
    found = []
    for arc in arcs_of(diagram):
        side, shares = np.sign(arc["parameter"].values - c), arc["word_share"].values[:, 0]
        if arc["branch"].values[0] < 0:
            found.append((shares[0], shares[0]))
        else:
            found += [tuple(rising(shares[i : i + 2])) for i in np.flatnonzero(np.diff(side))]
    return sorted(found, reverse=True)


def test_few_may_be_left_to_commit():
    """Q = (1 - c - b) f + c, whatever is left of c; here with f = α + βQ."""
    alpha, beta, share = 0.15, 0.6, 0.9995
    diagram = meanfield.bifurcation(Population(heard_last(alpha, beta), committed={"b": share}), word="a")
    c, Q = diagram["parameter"].values, diagram["word_share"].values[:, 0]
    np.testing.assert_allclose(Q, (1 - c - share) * (alpha + beta * Q) + c, atol=1e-12)
    assert c.max() == pytest.approx(1 - share, abs=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("word", ["a", "b"])
def test_exchanged_words_mirror_the_diagram(word):
    policies = [weighted(1, 2, 2.0), weighted(21, 2, 3.0)]
    options = {"fractions": [0.4, 0.6], "committed": {"a": 0.01, "b": 0.02}}
    both = Population(policies, **options), Population([relabelled(policy, [1, 0]) for policy in policies], **options)
    ours, theirs = (meanfield.critical_mass(one, word=word) for one in both)
    assert ours.sizes["fold"] == 1
    np.testing.assert_allclose(ours["critical_mass"], theirs["critical_mass"], atol=1e-11)
    np.testing.assert_allclose(ours["fold_parameter"][::-1], theirs["fold_parameter"], atol=1e-11)
    np.testing.assert_allclose(ours["fold_word_share"][::-1, ::-1], theirs["fold_word_share"], atol=1e-6)
    ours, theirs = (meanfield.bifurcation(one, word=word, spacing=0.1) for one in both)
    assert ours.sizes["point"] == theirs.sizes["point"]
    for name in ("parameter", "eigenvalue"):
        # the same points, but for where rounding cuts the last stretch
        np.testing.assert_allclose(rising(ours[name]), rising(theirs[name]), atol=1e-3)


# The rate equation


def test_population_leaves_its_old_state_at_the_critical_mass():
    """Just below, the old consensus stays near its fixed point; just above, it ends beyond the fold."""
    population, parameter, word = CASES["fraction, committed"]
    critical = meanfield.critical_mass(population, parameter=parameter, word=word, old="b")
    assert critical.attrs["transition"] == "fold"
    at, share = critical["critical_mass"].item(), critical["word_share"].values[0]
    ends = []
    for c in (at - 0.002, at + 0.002):
        there = with_parameter(population, parameter, word, c)
        start = meanfield.consensus(there, "b")
        solution = meanfield.solve(there, initial=start, times=np.array([0.0, 1.0]), max_time=3000.0)
        assert solution["steady"]
        ends.append(mixture_word_share(solution["composition"].values, there.mixture)[0])
    assert share - 0.2 < ends[0] < share
    assert ends[1] > share + 0.2


def test_agents_who_are_committed_already_count_towards_the_critical_mass():
    """The number is the whole fraction: the same without them, and a part of it is there."""
    policy = majority_policy(3, 0.98)
    alone = meanfield.critical_mass(policy, word="a")
    beside = meanfield.critical_mass(Population(policy, committed={"a": 0.04}))  # the word may be left out
    assert (alone.attrs["transition"], beside.attrs["word"]) == ("fold", "a")
    assert beside["critical_mass"].item() == pytest.approx(alone["critical_mass"].item(), abs=1e-9)
    assert (alone["already_there"].item(), beside["already_there"].item()) == (0.0, 0.04)
    assert beside.attrs["counts"] == "all agents committed to 'a', those that the population has included"
    other, parameter, _ = CASES["fraction, committed"]
    assert meanfield.critical_mass(other, parameter=parameter)["already_there"].item() == other.fractions[-1]


# Published policies


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_critical_masses_of_gpt_4o(published, every):
    """Between 5 and 25 % for every pair."""
    for pair in published["pair"].values[::every]:
        policy = published.sel(model="gpt-4o", pair=pair)
        critical = meanfield.critical_mass(policy, word=meanfield.toolbox.words_of(policy)[0])
        assert critical.attrs["transition"] == "fold"
        assert 0.05 < critical["critical_mass"].item() < 0.25


# Refusals and labels


def test_continuum_is_at_its_parameter_only():
    """Agents who say what they heard last: any share at c = 0, nothing but the consensus on a beyond."""
    diagram = meanfield.bifurcation(heard_last(0.0, 1.0), word="a")
    beyond = diagram["parameter"].values > 1e-12
    assert beyond.any()
    assert (diagram["word_share"].values[beyond, 0] == 1).all()


TWO = Population([majority_policy(3, 0.95), without_memory(0.8)], fractions=[0.5, 0.5])
ALIKE = Population([majority_policy(3, 0.95)] * 2, fractions=[0.5, 0.5])


@pytest.mark.parametrize("function", [meanfield.bifurcation, meanfield.critical_mass])
@pytest.mark.parametrize(
    ("population", "arguments", "message"),
    [
        (random_policy(1, 3, 1), {"word": "a"}, "population has 3 words"),
        (random_policy(1), {"parameter": "temperature"}, "parameter = 'temperature': expected one of committed, fra"),
        (random_policy(1), {"word": "c"}, "word = 'c': expected one of a, b"),
        (random_policy(1), {}, "word = None: expected the word to which agents are committed, one of a, b"),
        (random_policy(1), {"parameter": "fraction"}, "expected a policy before the last"),
        (TWO, {"parameter": "fraction", "word": "a"}, "word = 'a': only committed agents have one"),
        (ALIKE, {"parameter": "fraction"}, "expected a last policy that responds differently"),
    ],
)
def test_wrong_input_is_named(function, population, arguments, message):
    with pytest.raises(meanfield.InputError, match=message):
        function(population, **arguments)


@pytest.mark.parametrize("spacing", [0.0, np.nan, 1e-300])
def test_wrong_input_of_one_function_is_named(spacing):
    with pytest.raises(meanfield.InputError, match=f"spacing = {spacing}: expected a number of at least 0.0001 and"):
        meanfield.bifurcation(random_policy(1), word="a", spacing=spacing)
    with pytest.raises(meanfield.InputError, match="old = 'c': expected one of a, b"):
        meanfield.critical_mass(random_policy(1), word="a", old="c")


def heard_more(slope):
    """H = 3: q = 1/(1 + exp(-slope · (how often a was heard more than b))), without a bias."""
    space = meanfield.MemorySpace(2, 3)
    more = np.array([sum(1 - 2 * heard for _, heard in space.memory(i)) for i in range(space.n_states)])
    return meanfield.make_policy(1 / (1 + np.exp(-slope * more)), ["a", "b"])


@pytest.mark.usefixtures("unchecked_types")
def test_unbiased_models_have_a_pitchfork():
    """At equal shares both respond alike: an equilibrium at every fraction, where others branch off and vanish."""
    population = meanfield.Population([heard_more(2.0), heard_more(0.1)], fractions=[0.5, 0.5])
    critical = meanfield.critical_mass(population, parameter="fraction", old="a")
    c = critical["critical_mass"].item()
    assert 0.27 < c < 0.28
    for fraction, number in ((c - 2e-3, 3), (c + 2e-3, 1)):
        assert meanfield.fixed_points(population.with_fraction(fraction)).sizes["fixed_point"] == number
    assert critical.attrs["transition"] == "pitchfork"
    diagram = meanfield.bifurcation(population, parameter="fraction", spacing=0.1)
    equal = np.isclose(diagram["word_share"].values[:, 0], 0.5, atol=1e-12)
    c_equal = diagram["parameter"].values[equal]
    assert (c_equal.min(), c_equal.max()) == (0, 1)
    clear = np.abs(c_equal - c) > 1e-6
    assert (diagram["stable"].values[equal] == (c_equal > c))[clear].all()


def test_state_of_equal_shares_turns_unstable_at_the_pitchfork():
    population = meanfield.Population([heard_more(0.3), heard_more(2.0)], fractions=[0.5, 0.5])
    critical = meanfield.critical_mass(population, parameter="fraction")
    assert critical.attrs["transition"] == "pitchfork"
    np.testing.assert_allclose(critical["old_word_share"], 0.5)
    c = critical["critical_mass"].item()
    assert meanfield.fixed_points(population.with_fraction(c - 1e-3))["stable"].values.tolist() == [True]
    assert meanfield.fixed_points(population.with_fraction(c + 1e-2)).sizes["fixed_point"] == 3


def test_newcomers_may_keep_to_habits_of_their_own():
    """Both repeat what they said twice: f = 1 and 0, or f = 1/2 for the first and 3/13 for the second."""

    def alternating(memory):
        own = [said for said, _ in memory]
        return own[0] == "a" if len(own) == 2 else own != ["a"]

    def never_twice(memory):
        own = [said for said, _ in memory]
        return 1.0 if own == ["a", "a"] else 0.0 if own[-1:] == ["a"] else 0.3

    policies = [
        meanfield.make_policy(lambda memory, rule=rule: float(rule(memory)), ["a", "b"], memory_length=2)
        for rule in (alternating, never_twice)
    ]
    population = Population(policies, fractions=[0.5, 0.5])
    critical = meanfield.critical_mass(population, parameter="fraction")
    np.testing.assert_allclose(critical["old_word_share"], 0.5)
    assert "gradually" in critical.attrs["reason"]
    diagram = meanfield.bifurcation(population, parameter="fraction", spacing=0.05)
    c, share = diagram["parameter"].values, diagram["word_share"].values[:, 0]
    found = set()
    for branch in range(6):
        here = diagram["branch"].values == branch
        for first, second in itertools.product((0, 0.5, 1), (3 / 13, 1)):
            if here.any() and np.abs(share - (1 - c) * first - c * second)[here].max() < 1e-9:
                found.add((first, second))
    assert found == {*itertools.product((0, 0.5, 1), (3 / 13, 1))} - {(1, 1)}  # where all say the first word only


def test_where_policies_respond_alike_an_equilibrium_lasts():
    """Nobody says the first word twice, and p = 0.2 + 0.6 Q after the second: f = p / (1 + p)."""

    def rule(memory, after_both):
        own = [said for said, _ in memory]
        if own == ["a", "a"]:
            return after_both
        return 0.0 if own[-1:] == ["a"] else 0.8 if memory and memory[-1][1] == "a" else 0.2

    policies = [
        meanfield.make_policy(lambda memory, after=after: rule(memory, after), ["a", "b"], memory_length=2)
        for after in (1.0, 0.0)  # one goes on once it has said the first word twice
    ]
    population = Population(policies, fractions=[0.5, 0.5])
    expected = (np.sqrt(0.84) - 0.6) / 1.2
    diagram = meanfield.bifurcation(population, parameter="fraction", spacing=0.1)
    lasting = arcs_of(diagram)[1]
    np.testing.assert_allclose(lasting["parameter"], np.linspace(0, 1, 11))
    np.testing.assert_allclose(lasting["word_share"].values[:, 0], expected)
    critical = meanfield.critical_mass(population, parameter="fraction")
    np.testing.assert_allclose(critical["old_word_share"].values[0], expected)
    assert critical.attrs["reason"] == "the old state is an equilibrium at every fraction, and stays stable"
