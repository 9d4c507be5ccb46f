"""One policy or several in the published runs, in order."""

from __future__ import annotations

import pytest

import meanfield
from meanfield.datasets import RealPopulations
from validation.populations import mixture, one_policy, sharpness

TESTS = ["compared", "direction"]


@pytest.fixture(scope="module")
def published(data_folder) -> RealPopulations:
    return meanfield.datasets.ai_norms(data_folder, ordered=True)


def of(published: RealPopulations, model: str, options: str, experiment: str = "from_empty") -> RealPopulations:
    runs, events = published.runs, published.events
    assert events is not None
    chosen = (runs["model"] == model) & (runs["options"] == options) & (runs["experiment"] == experiment)
    runs = runs[chosen & (runs["memory_length"] == 5)]
    return published._replace(runs=runs, events=events[events["run"].isin(runs["run"])])


@pytest.mark.slow
def test_llama3_followed_one_policy(published):
    table = one_policy(of(published, "llama3", "X Y"), imitations=99)
    assert (table["p_value"] < 0.02).sum() <= 2, "19 tests; 0.2 expected"
    found = mixture(of(published, "llama3", "X Y"), most=2)
    assert found.numbers.set_index("components")["chosen"].tolist() == [True, False]


@pytest.mark.slow
def test_llama31_mq_changed_its_policy_but_its_agents_are_alike(published):
    real = of(published, "llama31", "Q M")
    table = one_policy(real, imitations=99).set_index(TESTS)["p_value"]
    assert table["runs", "policy"] == table["order of runs", "sharpness"] == 0.01
    assert table["time in a run", "words"] == table["next choice, same memory", "words"] == 0.01
    assert table["agents", "words"] > 0.05 and table["interaction H + 1", "words"] > 0.05
    runs = sharpness(real).query("of == 'run'")["sharpness"].to_numpy()
    assert runs[:10].min() > 1.1 > runs[10:].mean()
    one = mixture(real, period=20, most=2).numbers.set_index("components")
    assert one.loc[2, "gain"] > 3 * one.loc[2, "gain_error"]  # 58 ± 15
