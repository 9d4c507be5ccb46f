# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Norms: from the probabilities of operations to their emergence
#
# The agents of [003] detect conflicts, talk, identify norms, check them and comply. For a language model each of these
# is a yes/no question. The probabilities of the answers make a rate equation for each behaviour. It gives the curves of
# the paper's Fig. 2, the number of entrepreneurs that a norm needs, and the behaviour of ten agents.

# %%
import matplotlib.pyplot as plt
import pandas as pd

import meanfield
import validation
from theory import norms

# %% [markdown]
# ## Behaviours and their standards
#
# Each behaviour has two opposing standards. The standard 'for' is the one that prevails in the paper, such as no
# smoking indoors, and 'against' is its opposite.

# %%
pd.DataFrame({name: dict(behaviour.standards) for name, behaviour in norms.BEHAVIOURS.items()}).T

# %% [markdown]
# ## The rate equation
#
# How fast do the standards 'for' emerge? In a quarter of a day 70 % accept them, and later they comply, tippers last.
# The paper prints no probabilities: this set is ours, chosen by hand to reproduce its findings.
# `policy_extraction.norms.probe_operations` measures the probabilities of a language model.

# %%
operations = norms.default_operations()
curves = norms.emergence(operations=operations)
figure, axes = plt.subplots(1, 3, figsize=(13, 3.4), layout="constrained")
meanfield.plot(curves.sel(standard="for"), axes)

measures = norms.emergence_measures(curves).sel(standard="for", drop=True)
measures[["kind", "accepted_day", "complying_day", "reached_end", "complying_end"]].to_dataframe().round(3)

# %% [markdown]
# ## Fixed points
#
# Where do the paper's ten agents end? About smoking they all hold 'for', from any start. About tipping they are evenly
# split: 'for' or 'against' can prevail, and a saddle, where both coexist, separates the two.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
tables = {}
for name, axis in zip(("smoking", "tipping"), axes, strict=True):
    points = norms.fixed_points(name, operations=operations)
    meanfield.plot(points, axis)
    held = {f"hold '{standard}'": points["reached"].sel(standard=standard).values for standard in norms.STANDARDS}
    columns = ["regime", "eigenvalue", "stability"]
    tables[name] = points[columns].to_dataframe()[columns].assign(**held)
pd.concat(tables, names=["behaviour"]).round(3)

# %% [markdown]
# ## Sensitivity
#
# Which probabilities speed the norm of tipping up? Those of the check of a norm that was heard: if one of them grows by
# a tenth, 70 % accept 'for' half an hour earlier.

# %%
slopes = norms.sensitivity(["tipping"], operations=operations)
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
axis = meanfield.plot(slopes, axis, view="accepted_day")

# %% [markdown]
# ## Entrepreneurs
#
# How many entrepreneurs does the evenly split norm of tipping need, if 10 % of the agents work for 'against'? A little
# more than 10 %: beyond the threshold 'for' displaces 'against'. If nobody is an entrepreneur, neither standard wins.

# %%
threshold = norms.entrepreneur_threshold("tipping", operations=operations, opposing=0.1, times=[100], points=11)
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
meanfield.plot(threshold, axis)

alone = norms.emergence(["tipping"], operations=operations, agents=norms.as_ordinary(norms.AGENTS))
accepted = alone["accepted"].isel(behaviour=0, time=-1).to_series()
print("without entrepreneurs on day 2:", ", ".join(f"{share:.0%} accept '{name}'" for name, share in accepted.items()))

# %% [markdown]
# ## N agents
#
# How good is the rate equation for ten agents? Its error is less than half a percent, and it falls like 1/N in exact
# simulations of the same model.

# %%
runs = validation.norms.simulate("smoking", n_agents=[10, 20, 40], runs=4000, seed=1, days=1)
theory = norms.emergence(["smoking"], operations=operations, times=runs["time"].values)
comparison = validation.norms.compare(theory, runs)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
meanfield.plot(comparison, axis, view="error")
print(f"for N → ∞ simulation {comparison['limit_verdict'].item()} with theory")

# %% [markdown]
# ## A society of agents with norm databases
#
# What happens in a single society? This simulation follows each agent: norms with utilities, the check in four steps,
# plans, actions, synthesis. Ten agents accept the standards within hours and comply by and by. Here a table answers the
# questions; `policy_extraction.norms.NormOperations` answers with a language model, and a `log` then keeps every
# prompt.

# %%
society = validation.norms.simulate_society(validation.norms.TableOperations(operations), encounters=3600, seed=1)
figure, axes = plt.subplots(1, 3, figsize=(13, 3.4), layout="constrained")
meanfield.plot(society.sel(standard="for"), axes, view="shares")
figure, axis = plt.subplots(figsize=(11, 3.4), layout="constrained")
axis = meanfield.plot(society, axis, view="timeline")
