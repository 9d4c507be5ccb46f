"""When agreement is first seen, against windows of random interactions."""

import numpy as np
import pytest

from meanfield._large_deviations.agreement_rule import AgreementRule

pytestmark = pytest.mark.usefixtures("unchecked_types")


def test_rate_is_that_of_windows_of_random_interactions():
    """2,000 sequences: standard error of the ratio 0.03 at most. Doubling the number of failures is the control."""
    size, allowed, rng = 72, 3, np.random.default_rng(1)
    rule = AgreementRule(24, 0.95)
    for mean in (4.5, 6.0):
        chance = mean / size
        fails = np.cumsum(rng.random((2000, 1500)) < chance, axis=1)
        agreed = fails[:, size:] - fails[:, :-size] <= allowed
        fresh = ~agreed[:, 0]
        seen = np.where(agreed.any(1), agreed.argmax(1), agreed.shape[1])[fresh]
        rate = (seen < agreed.shape[1]).sum() / seen.sum()
        ours, other = rule.per_interaction(np.array([chance, 2 * chance]))
        assert 1 / 1.5 < ours / rate < 1.5
        assert other / rate < 0.3


def test_rates_are_finite_for_any_group():
    """Without failures, those remembered are forgotten at twice their rate; among many agents it is all or nothing."""
    for n_agents in (2, 24, 1000):
        for success_rate in (0.5, 0.95, 1.0):
            rates = AgreementRule(n_agents, success_rate).per_interaction(np.linspace(0, 1, 101))
            assert np.isfinite(rates).all()
            assert (rates >= 0).all()
            assert (np.diff(rates) <= 1e-12 * rates[0]).all()
            if n_agents <= 24:
                allowed = 3 * n_agents - int(np.ceil(success_rate * 3 * n_agents - 1e-9))
                assert rates[0] == pytest.approx(2 * (allowed + 1) / (3 * n_agents), rel=0.1)
    many = AgreementRule(20_000, 0.95).per_interaction(np.array([0.045, 0.055]))
    assert 20_000 * many[0] > 10, "in a round"
    assert 20_000 * many[1] < 1e-6
