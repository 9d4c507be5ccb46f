# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Theory and simulation
#
# The rate equation describes infinitely many agents, and corrections to it describe N agents. Exact simulations of
# groups show how good both are. SmolLM2's policies come with the package; [004] publishes policies of larger models.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import meanfield
import validation

smollm2 = meanfield.datasets.smollm2().sel(pair="she/he")
published = meanfield.datasets.llm_group_size()

# %% [markdown]
# ## Trajectories
#
# How do word shares develop by the rate equation (left) and in groups of N agents? Thin lines are single groups, shades
# hold 90 % of them. SmolLM2 (top) keeps both words, and groups scatter less the larger they are. GPT-4o (bottom) agrees
# on 'his' by the rate equation, and in small groups on either word.

# %%
figure, axes = plt.subplots(2, 4, figsize=(15, 6.5), layout="constrained")
groups = {}
for policy, row in zip((smollm2, published.sel(model="gpt-4o", pair="his/her")), axes, strict=True):
    runs = validation.simulate(policy, n_agents=[10, 100, 1000], runs=1000, seed=1, max_rounds=60, record_rounds=20)
    meanfield.plot(meanfield.solve(policy), row[0])
    meanfield.plot(runs, row[1:])
    groups[policy["pair"].item()] = runs

# %% [markdown]
# ## Bands for N agents
#
# `finite_size` predicts the mean of N agents and their spread, here two standard deviations, without a simulation. In
# the table both agree with the simulated groups of SmolLM2.

# %%
rounds = np.arange(21.0)
moments = meanfield.finite_size(smollm2, n_agents=[10, 100, 1000], times=meanfield.TIME_PER_ROUND * rounds)
figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
meanfield.plot(moments, axis)

simulated = groups["she/he"]["word_share"].sel(word="she", round=20)
theory = moments.sel(word="she").isel(time=-1)
columns = {
    "mean, theory": theory["mean"],
    "mean, simulated": simulated.mean("run"),
    "deviation, theory": theory["variance"] ** 0.5,
    "deviation, simulated": simulated.std("run"),
}
pd.DataFrame({name: column.to_series() for name, column in columns.items()}).round(4)

# %% [markdown]
# ## The error falls with N
#
# How far is the rate equation from the mean of many groups? The error, root mean square over rounds and words, falls
# about like 1/N (dashed), and nothing is left of it for N → ∞.

# %%
sizes = {"gay/straight": [30, 100, 300, 1000], "more/less": [10, 30, 100, 300]}
figure, axes = plt.subplots(2, 2, figsize=(11, 7), layout="constrained")
for (pair, n_agents), row in zip(sizes.items(), axes, strict=True):
    policy = published.sel(model="llama31_70B", pair=pair)
    runs = validation.simulate(policy, n_agents=n_agents, runs=4000, seed=1, max_rounds=30, record_rounds=30)
    comparison = validation.compare(meanfield.solve(policy), runs)
    meanfield.plot(comparison, row[0])
    meanfield.plot(comparison, row[1], view="error")
    low, high = comparison["error_slope_interval"].values
    print(f"{pair}: the error goes as N to the {comparison['error_slope'].item():.2f} ({low:.2f} to {high:.2f}); "
          f"for N → ∞ simulation {comparison['limit_verdict'].item()} with theory")  # fmt: skip

# %% [markdown]
# ## Group size decides
#
# How often do N agents end at the strong word, the one on which infinitely many agree? The lines are no fits: each
# policy gives one number κ, and the probability is Φ(κ√N), Φ being the normal distribution function. Against κ√N all
# pairs lie near one curve.

# %%
policies = published.sel(model="gpt-4o", pair=["African/White", "his/her", "she/he", "woman/man"])
bias = validation.collective_bias(policies, n_agents=[10, 30, 100, 300, 1000], runs=1000, seed=1)
figure, axes = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
for axis, view in zip(axes, ("size", "collapse"), strict=True):
    meanfield.plot(bias, axis, view=view)

# %% [markdown]
# From which size on do 99 % of the groups end at the strong word? From a hundred agents to thousands.

# %%
laws = {policy["pair"].item(): meanfield.group_size_law(policy) for policy in meanfield.each_policy(policies)}
table = pd.DataFrame(
    {
        "strong word": {pair: law["strong_word"].item() for pair, law in laws.items()},
        "κ": {pair: law["kappa"].item() for pair, law in laws.items()},
        "N for 99 %": {pair: round(law["n_critical"].item()) for pair, law in laws.items()},
    }
)
table.round(4)
