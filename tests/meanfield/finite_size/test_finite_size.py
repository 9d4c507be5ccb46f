"""Linear noise and refined mean field against the exact distribution of small populations, and against simulations."""

import warnings

import jax
import numpy as np
import pytest
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.sparse.linalg import expm_multiply
from threadpoolctl import threadpool_info, threadpool_limits

import meanfield
import validation
from _exact_chains import ExactChain
from _metastable import follower
from _policies import drift, random_policy, relabelled
from meanfield import core, finite_size
from meanfield._finite_size import moments as _finite_size
from meanfield._finite_size.moments import STEP
from meanfield._numerics.blas import one_blas_thread
from meanfield._population.stacks import as_games
from meanfield.toolbox import space_of

TIMES = np.array([2.0, 4.0, 8.0])  # whole rounds, so that N interactions, 2N, 4N have happened


def order(sizes, errors):
    """-d log(error) / d log N."""
    return -np.polyfit(np.log(sizes), np.log(errors), 1)[0]


FEEDBACK = meanfield.make_policy(np.array([0.6, 0.9, 0.5, 0.4, 0.15]), ["a", "b"])


@pytest.mark.parametrize(
    ("policy", "highest"), [(random_policy(0), 1), pytest.param(FEEDBACK, 2, marks=pytest.mark.slow)]
)
def test_predictions_converge_to_the_exact_law_at_their_orders(policy, highest):
    """Errors fall like 1/N (mean field), 1/N² (refined mean field and variance) and 1/N³ (both with the next order).

    Tolerance 0.3, because N goes to 12 only and the next order still counts. Each term matters: without the one for
    agents who never meet themselves, or for interactions that come one after the other, the second would be 1.
    """
    sizes = np.array([5, 8, 12])
    predictions = [finite_size(policy, n_agents=sizes, times=TIMES, order=order) for order in range(1, highest + 1)]
    errors = []
    for n in sizes:
        group = validation.naming_game.exact_population(policy, n_agents=int(n))
        laws = [np.asarray(group.law(rounds=int(time / 2))).ravel() for time in TIMES]
        mean = np.array([law @ group.word_share for law in laws])
        variance = np.array([law @ (group.word_share - one) ** 2 for law, one in zip(laws, mean, strict=True)])
        pairs = [(predictions[0]["word_share"], mean)]
        for prediction in (one.sel(n_agents=n) for one in predictions):
            pairs += [(prediction["mean"], mean), (prediction["variance"], variance)]
        errors.append([np.abs(predicted.values - exact).max() for predicted, exact in pairs])
    orders = [order(sizes, values) for values in np.transpose(errors)]
    assert orders[:3] == pytest.approx([1, 2, 2], abs=0.3)
    assert orders[3:] == pytest.approx((highest - 1) * [3, 3], abs=0.6), "2 with a wrong term"


def test_other_attractors_are_told():
    """Groups of ten end at A in two of three cases, and the law says 0.96 of all words."""
    both, one = follower(0.03, empty=0.6), random_policy(0, memory_length=2)
    with pytest.warns(UserWarning, match=r"mostly A \(0\.96\) and mostly B \(0\.96\).*group_size_law") as told:
        law = finite_size(both, n_agents=[10], times=TIMES)
    assert len(told) == 1
    assert law.attrs["attractors"] == "mostly A (0.96); mostly B (0.96)"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finite_size(both, times=TIMES)  # the limit of many agents, none of which end elsewhere
        law = finite_size(one, n_agents=[10], times=TIMES)
    assert law.attrs["attractors"].startswith("mostly")
    stack = xr.concat([follower(errs, empty=0.6).assign_coords(pair=f"{errs}") for errs in (0.03, 0.3)], "pair")
    with pytest.warns(UserWarning, match="mostly A"):
        law = finite_size(stack, n_agents=[10], times=TIMES)
    assert [found.count(";") for found in law["attractors"].values] == [1, 0]


@pytest.mark.parametrize(("call", "name"), [(finite_size, "moments"), (meanfield.group_size_law, "paths and orders")])
def test_progress_is_shown_where_it_is_asked_for(call, name, capsys):
    policy = random_policy(0)
    call(policy)
    assert not capsys.readouterr().err, "no terminal"
    call(policy, progress=True)
    assert f"{name}: " in capsys.readouterr().err


def beside_a_fold(fraction):
    """Two policies and committed agents, of whom too many have let the attractor of the other word vanish."""
    mixed = [follower(0.03, empty=0.6), follower(0.2)]
    return meanfield.Population(mixed, fractions=[0.6, 0.4], committed={"B": fraction})


@pytest.mark.slow
def test_noise_that_is_not_weak_is_told():
    """Where a vanished attractor holds groups back they spread more than twice as widely as the law says."""
    held, free, options = beside_a_fold(0.1), beside_a_fold(0.4), {"runs": 400, "seed": 1, "record_rounds": 16}
    with pytest.warns(UserWarning, match=r"is up to 1 at N = 20, 0\.46 at N = 100, .*simulate") as told:
        law = finite_size(held, n_agents=[1000, 100, 20], times=[0.0, 32.0])
    assert len(told) == 1 and law.attrs["attractors"].startswith("mostly B")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finite_size(held, times=[0.0, 32.0])
        weak = [finite_size(held, n_agents=1000, times=[0.0, 32.0]), finite_size(free, n_agents=20, times=[0.0, 32.0])]
    for population, n_agents, predicted, least, most in (
        (held, 20, law, 2, 4),
        (held, 100, law, 1.8, 4),
        (held, 1000, weak[0], 0.85, 1.15),
        (free, 20, weak[1], 0.85, 1.15),
    ):
        runs = validation.simulate(population, n_agents=n_agents, max_rounds=16, **options)
        spread = runs["word_share"].sel(word="A", round=16).std("run").item()
        variance = predicted["variance"].sel(word="A", time=32, n_agents=n_agents).item()
        assert least < spread / variance**0.5 < most


def epidemic(infection, recovery):
    return meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [infection, recovery])


def test_an_epidemic_that_hardly_grows_has_strong_noise():
    with pytest.warns(UserWarning, match=r"^ReactionModel.*N = 10, .*validation\.reactions\.simulate"):
        finite_size(epidemic(1.1, 1.0), n_agents=10, times=[3.0], initial=np.array([0.9, 0.1]))


@pytest.mark.slow
def test_populations_are_reaction_models():
    """At the times of a Poisson process C is larger by 2t FFᵀ, and V by t JF."""
    policies = [random_policy(0), random_policy(1)]
    population = meanfield.Population(policies, fractions=[0.3, 0.7], committed={"a": 0.1, "b": 0.05})
    model, mixture = meanfield.reaction_model(population), population.mixture
    said = np.concatenate([*mixture.q, np.eye(2)])
    empty = mixture.share[:, None] * np.eye(1, 5)
    start = np.append(empty, mixture.committed)
    ours = finite_size(population, times=TIMES)
    theirs = finite_size(model, times=TIMES, initial=start)
    path = theirs["composition"].values
    np.testing.assert_allclose(ours["word_share"], path @ said, atol=1e-6)
    moving = np.array([model.drift(x) for x in path])
    bent = np.array([model.jacobian(x) @ F for x, F in zip(path, moving, strict=True)])
    later = TIMES[:, None] * (bent @ said)
    assert np.abs(later).max() > 1e-3
    correction = theirs["composition_correction"].values @ said
    np.testing.assert_allclose(ours["word_share_correction"] + later, correction, atol=1e-6)
    single = finite_size(meanfield.Population(policies[0]), times=TIMES)["word_share_variance"]
    np.testing.assert_allclose(single, finite_size(policies[0], times=TIMES)["word_share_variance"], atol=1e-12)


@pytest.mark.parametrize(("recovery", "highest"), [(0.3, 1), pytest.param(0.6, 2, marks=pytest.mark.slow)])
def test_epidemics_converge_to_the_exact_law_at_their_orders(recovery, highest):
    """Moments of the number of ill agents at times of Poisson processes, against the master equation."""
    model = epidemic(1.0, recovery)
    times, sizes, start = np.array([0.5, 1.5, 3.0]), np.array([40, 80, 160]), np.array([0.5, 0.5])
    prediction = finite_size(model, times=times, n_agents=sizes, initial=start, order=highest).sel(state="I")
    errors = []
    for n in sizes:
        chain = ExactChain(model, [int(n)])
        ill = chain.counts[:, 1] / n
        law = (ill == 0.5).astype(float)
        ours = prediction.sel(n_agents=n)
        found = []
        for time, mean, variance, limit in zip(times, ours["mean"], ours["variance"], ours["composition"], strict=True):
            p = expm_multiply(chain.generator.T * time, law)
            exact = p @ ill
            found.append([abs(limit - exact), abs(mean - exact), abs(variance - p @ (ill - exact) ** 2)])
        errors.append(np.max(found, axis=0))
    expected = [1, highest + 1, highest + 1]
    assert [order(sizes, values) for values in np.transpose(errors)] == pytest.approx(expected, abs=0.1 + 0.1 * highest)


@pytest.mark.slow
def test_the_cumulants_of_order_one_are_those_of_the_correlations():
    """Two programs for V and W: dense here, in factors of low rank there; of two models and committed agents."""
    population = meanfield.Population([random_policy(3), random_policy(4)], fractions=[0.6, 0.4], committed={"b": 0.2})
    ours = finite_size(population, times=[0.0, 3.0])
    (mixture,) = as_games(population).mixtures
    x, n = np.zeros(mixture.q.shape[:2]), mixture.q[..., 0].size
    x[:, 0] = mixture.share
    start = (x.ravel(), np.zeros(n), np.zeros((n, n)), np.zeros(n), np.zeros((n, n)), np.zeros((n, n, n)))
    x, V, W, A, B, K = _finite_size.cumulants_later((*mixture,), start, 3.0, 2.0)
    q = mixture.q.reshape(n, -1)
    law = ours.sel(time=3.0)
    np.testing.assert_allclose(x @ q + mixture.committed, law["word_share"], atol=1e-6)
    np.testing.assert_allclose(V @ q, law["word_share_correction"], atol=1e-5)
    np.testing.assert_allclose(np.diag(q.T @ W @ q), law["word_share_variance"], atol=1e-5)
    for tensor in (V, W, A, B, K):  # numbers of agents of each kind are fixed
        np.testing.assert_allclose(tensor.reshape(2, n // 2, -1).sum(1), 0, atol=1e-10)
    np.testing.assert_allclose(K, K.transpose(2, 0, 1), atol=1e-10)


def test_variance_solves_the_linear_noise_equation():
    """qᵀCq of dC/dt = JC + CJᵀ + D, dense, is that of a Poisson process: larger by 2t(qᵀF)²."""
    policy = random_policy(7, 2, 1, concentration=0.3)
    q, space = policy["q"].values, space_of(policy)
    n, time = space.n_states, 3.0
    game = core.WordGame(q)
    jacobian = jax.jit(jax.jacobian(lambda x: core.drift(game, x)))
    noise = jax.jit(jax.vmap(lambda x, w: core.noise_product(game, x, w), (None, 0)))

    def slope(_, state):
        x, C = state[:n], state[n:].reshape(n, n)
        JC = jacobian(x) @ C
        D = noise(x, np.eye(n))
        return np.concatenate([drift(x, q), (JC + JC.T + D).ravel()])

    start = np.concatenate([np.eye(n)[0], np.zeros(n * n)])
    end = solve_ivp(slope, (0, time), start, rtol=1e-8, atol=1e-10).y[:, -1]
    x, C = end[:n], end[n:].reshape(n, n)
    shift = drift(x, q) @ q
    ours = finite_size(policy, times=np.array([0.0, time]))["word_share_variance"].values[-1]
    np.testing.assert_allclose(ours + 2 * time * shift**2, np.diag(q.T @ C @ q), atol=1e-5)


SAVED = ("word_share", "word_share_correction", "word_share_variance")


def test_steps_are_fine_enough(monkeypatch):
    """Half of them changes little; the control, twice as long ones, more: 2^5 times, less where x leads the error."""
    policy = random_policy(2)
    ours = finite_size(policy, times=TIMES)
    errors = []
    for factor in (0.5, 2):
        monkeypatch.setattr(_finite_size, "STEP", factor * STEP)
        other = finite_size(policy, times=TIMES)
        errors.append(max(np.abs(ours[name] - other[name]).max().item() for name in SAVED))
    assert errors[0] < 2e-5
    assert errors[1] > 8 * errors[0]


@pytest.mark.slow
def test_nothing_of_weight_is_neglected(monkeypatch):
    policy = random_policy(5, 2, 3, concentration=0.2)
    ours = finite_size(policy, times=TIMES)
    for neglected, rank, bound in ((1e-14, 36, 1e-7), (1.0, 3, np.inf)):
        monkeypatch.setattr(_finite_size, "NEGLECTED", neglected)
        monkeypatch.setattr(_finite_size, "RANK", rank)
        again = finite_size(policy, times=TIMES)
        error = max(np.abs(ours[name] - again[name]).max().item() for name in SAVED)
        assert error < bound
    assert error > 1e-6  # the control: three factors are not enough


def test_the_start_is_certain_and_the_share_that_of_the_rate_equation():
    policy = random_policy(1)
    result = finite_size(policy, times=TIMES - 2, n_agents=[10, 2**62])
    assert result["mean"].dims == ("n_agents", "time", "word")
    np.testing.assert_allclose(result["mean"].sel(n_agents=2**62), result["word_share"], atol=1e-15)
    assert np.abs(result["word_share_correction"].values[0]).max() == 0
    assert result["word_share_variance"].values[0].max() == 0
    np.testing.assert_allclose(result["word_share"].values[0], policy["q"].values[0], atol=1e-15)
    solved = meanfield.solve(policy, times=TIMES - 2)["word_share"]
    np.testing.assert_allclose(result["word_share"], solved, atol=1e-6)


def test_corrections_keep_the_sum_over_words_and_follow_their_names():
    policy, new = random_policy(3, 3, 1), [2, 0, 1]
    ours, theirs = finite_size(policy, times=TIMES), finite_size(relabelled(policy, new), times=TIMES)
    np.testing.assert_allclose(ours["word_share_correction"].sum("word"), 0, atol=1e-9)
    for name in SAVED:
        np.testing.assert_allclose(ours[name].values, theirs[name].values[:, new], atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"times": np.array([1.0, 1.0])}, "times = .*: expected increasing times"),
        ({"times": np.array([0.0, 1e9])}, "times end at 1e.09: expected at most .* for 5 states"),
        ({"order": 3}, "order = 3: expected a whole number from 1 to 2"),
        ({"n_agents": [10, 10]}, "n_agents = .*: expected distinct whole numbers"),
        ({"n_agents": np.array([10.5])}, r"n_agents = .*10.5.*: expected distinct whole numbers"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(meanfield.InputError, match=message):
        finite_size(random_policy(1), **arguments)


@pytest.mark.slow
def test_published_policy_against_simulated_populations(published):
    """GPT-4o {African, White} at N = 8,000, six rounds, 20,000 runs.

    The refined mean is within five standard errors, mean field alone is not. The variance is within five of its own,
    and 600/N of its size: over N = 500 to 32,000 what it lacks is none in three rounds, 130/N in the fourth and about
    450/N in the sixth, the next order in 1/N where the populations differ by how far they have got to consensus.
    """
    from validation import simulate

    policy, n, runs = published.sel(model="gpt-4o", pair="African/White"), 8000, 20_000
    share = simulate(policy, n_agents=n, runs=runs, seed=11, record_rounds=6, max_rounds=6)["word_share"]
    share = share.isel(n_agents=0, word=0, round=slice(1, None)).values
    ours = finite_size(policy, n_agents=n, times=2.0 * np.arange(1, 7)).isel(n_agents=0, word=0)
    variance = ours["variance"].values
    refined, plain = ((share.mean(0) - ours[name].values) / np.sqrt(variance / runs) for name in ("mean", "word_share"))
    assert np.abs(refined).max() < 5 < np.abs(plain).max()
    squares = (share - share.mean(0)) ** 2
    error = 5 * squares.std(0) / np.sqrt(runs) / variance
    assert (np.abs(squares.mean(0) / variance - 1) < error + np.array([0, 0, 0, 600, 600, 600]) / n).all()


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


class _Late:
    """threadpool_limits that begins with its context, as two threads would."""

    def __enter__(self) -> None:
        self.limits = threadpool_limits(1, user_api="blas")

    def __exit__(self, *_) -> None:
        self.limits.restore_original_limits()


def test_blas_has_its_threads_back_when_the_last_has_left():
    """However callers overlap. The control: of two limits of threadpoolctl alone the second restores 1."""

    def left_in_turn(limit) -> set[int]:
        with threadpool_limits(2, user_api="blas"):
            callers = [limit(), limit()]
            for caller in callers:
                caller.__enter__()
            assert threads() == {1}
            for caller in callers:
                caller.__exit__(None, None, None)
            return threads()

    assert left_in_turn(one_blas_thread) == {2}
    assert left_in_turn(_Late) == {1}


def at_rest(model, start, time=60.0):
    law = meanfield.finite_size(model, times=[time], initial=np.array(start)).isel(time=0)
    return [law[f"composition{part}"].values for part in ("", "_correction", "_variance")]


def test_epidemic_with_a_constant_source_has_the_published_correction():
    """Fixed point and V of refined mean field where an agent may meet itself; here two different agents meet."""
    rules = [("S", "I"), ("S + I", "2 I"), ("I", "R"), ("R", "S")]
    model = meanfield.ReactionModel.from_rules(rules, [1.0, 2.0, 1.0, 3.0])
    x, V, _ = at_rest(model, [1.0, 0.0, 0.0])
    assert x == pytest.approx([0.26259518, 0.55305361, 0.1843512], abs=1e-8)
    more = 2 * x[0] * x[1] * np.array([-1.0, 1.0, 0.0])  # n_S n_I / (N (N - 1)) exceeds n_S n_I / N² by a 1/N of it
    shift = np.linalg.lstsq(np.vstack([model.jacobian(x), np.ones(3)]), -np.append(more, 0.0))[0]
    assert V - shift == pytest.approx([0.15876, -0.11907, -0.03969], abs=1e-5)
    assert np.abs(V - [0.15876, -0.11907, -0.03969]).max() > 0.01, "which would be told from it"


@pytest.mark.slow
def test_noisy_voters_are_beta_binomial():
    """n of N voters are at A with the beta-binomial distribution of e_A (N - 1) / h and e_B (N - 1) / h."""
    errs, copies = (0.1, 0.3), 2.0
    rules = [("A + B", "2 A"), ("A + B", "2 B"), ("B", "A"), ("A", "B")]
    model = meanfield.ReactionModel.from_rules(rules, [copies, copies, *errs])
    x, V, C = at_rest(model, [1.0, 0.0])
    p, s = errs[0] / sum(errs), sum(errs) / copies
    assert x[0] == pytest.approx(p, abs=1e-9) and abs(V).max() < 1e-7
    assert C[0] == pytest.approx(p * (1 - p) * (1 + 1 / s), rel=1e-6)


@pytest.mark.slow
def test_agents_that_never_meet_are_independent():
    model = meanfield.ReactionModel.from_rules({"I": "R"}, 1.0)
    found = finite_size(model, initial=np.array([1.0, 0.0]), times=[0.0, 1.0, 3.0])
    left = np.exp([0.0, -1.0, -3.0])
    np.testing.assert_allclose(found["composition_variance"].sel(state="I"), left * (1 - left), atol=1e-6)
    np.testing.assert_allclose(found["composition_correction"], 0, atol=1e-9)
