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
# The agents of [003] detect conflicts, talk, identify norms, check them and comply. For a language model each of
# these is a yes/no question. The probabilities of its answers make a reaction model for each behaviour. The model
# gives the curves of the paper's Fig. 2, the number of entrepreneurs that a norm needs, and the behaviour of ten
# agents.

# %%
import matplotlib.pyplot as plt

import theory
import validation
from theory.norms import AGENTS, as_ordinary, default_operations, emergence, emergence_measures, entrepreneur_threshold
from validation.norms import TableOperations, simulate_society

# %% [markdown]
# ## The rate equation
#
# The paper prints no probabilities. This set is ours, chosen by hand to reproduce the paper's findings.
# `policy_extraction.norms.probe_operations` measures the probabilities of a language model.

# %%
operations = default_operations()
curves = emergence(operations=operations)
figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), sharey=True)
for axis, (name, curve) in zip(axes, curves.groupby("behaviour", squeeze=False), strict=True):
    one = curve.isel(behaviour=0).sel(standard="for")
    axis.plot(one["time"], one["accepted"], label="accepted")
    axis.plot(one["time"], one["complying"], label="complying")
    axis.set(title=name, xlabel="day", ylim=(0, 1))
axes[0].legend()
emergence_measures(curves).sel(standard="for").to_dataframe().round(3)

# %% [markdown]
# ## Fixed points
#
# The paper's ten agents all end up against smoking, from any start. They are evenly split about tipping: either
# standard can prevail, and a saddle, where both coexist, separates the two.

# %%
for name in ("smoking", "tipping"):
    points = theory.norms.fixed_points(name, operations=operations)
    points["hold it"] = points["reached"].sel(standard="for", drop=True)
    print(points[["regime", "hold it", "eigenvalue", "stability"]].to_dataframe().iloc[:, :4].round(3), end="\n\n")

# %% [markdown]
# ## Sensitivity
#
# The table gives the derivative, with respect to each probability, of the time at which 70 % have accepted the norm.

# %%
names = ["decide_to_talk", "identify_chat", "conflict_free"]
slopes = theory.norms.sensitivity(["tipping"], operations=operations, names=names)
slopes.squeeze("behaviour", drop=True).to_dataframe().round(2)

# %% [markdown]
# ## Entrepreneurs
#
# The evenly split tipping norm follows its entrepreneurs and does not emerge without them.

# %%
alone = emergence(["tipping"], operations=operations, agents=as_ordinary(AGENTS))
print(f"without entrepreneurs {alone['accepted'].sel(standard='for').isel(time=-1).item():.2f} accept it in the end")
threshold = entrepreneur_threshold("tipping", operations=operations, opposing=0.1, points=11)
print(f"against 10 % who work for the opposite it takes {threshold['threshold'].values.ravel()[-1]:.3f} of the agents")

# %% [markdown]
# ## N agents
#
# Exact simulations of the same model test whether the error of the theory falls as 1/N.

# %%
runs = validation.norms.simulate("smoking", n_agents=[10, 50, 250], runs=4000, seed=1)
check = validation.norms.compare(emergence(["smoking"], operations=operations, times=runs["time"].values), runs)
print("error at N = 10, 50, 250:", check["error"].values.round(4), "slope", round(check["error_slope"].item(), 2))
print("what is left of it for large N:", check["limit_verdict"].item())
ten = validation.norms.average(runs).sel(n_agents=10, standard="for")
print(f"ten agents: {ten['complying'].isel(time=-1).item():.3f} comply after two days")

# %% [markdown]
# ## A society of agents with norm databases
#
# This simulation follows each agent: norms with utilities, the check in four steps, plans, actions, synthesis. Here a
# table answers the questions. `policy_extraction.norms.NormOperations` answers with a language model, and a `log` then
# keeps every prompt.

# %%
society = simulate_society(TableOperations(operations), encounters=3600, seed=1)
end = society.isel(event=-1)
for name in society["behaviour"].values:
    shares = end.sel(behaviour=name, standard="for")
    print(f"{name}: {shares['accepted'].item():.1f} accept, {shares['complying'].item():.1f} comply")
