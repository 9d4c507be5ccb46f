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
# # From a policy to a checked stability table
#
# A policy gives the probability of each word in every memory state. It determines the rate equation, its fixed points
# and their stability. Simulations of finite populations show the range of this theory.

# %%
import matplotlib.pyplot as plt
from rich import print  # in a terminal or a notebook, tables come out as tables

import meanfield
import validation

# %% [markdown]
# ## Policies
#
# Paper 004 publishes policies for memories of H = 5 interactions, with 1,365 memory states each.
# `policy_extraction.extract` measures the policy of your own model and returns the same kind of Dataset.

# %%
policies = meanfield.datasets.llm_group_size().sel(model="llama31_70B", pair=["gay/straight", "his/her", "more/less"])
policies

# %% [markdown]
# ## Table
#
# A candidate is the composition in which everybody remembers one word only. The paper's Table S1 lists its leading
# eigenvalue λ. A candidate is a fixed point only if its residual 1 - q is 0, that is, if an agent with this memory
# never says another word. Below the candidates the table lists the true fixed points of the rate equation.

# %%
table = meanfield.stability_table(policies)
print(meanfield.stability_report(table))

# %%
for sentence in meanfield.describe_stability(table):
    print(sentence)

# %% [markdown]
# Llama's 'her' has λ < 0 in the paper's table but is no fixed point: an agent surrounded by 'her' still says 'his' with
# probability 0.056. The attractor nearby is mixed, with 79 % 'her'.

# %% [markdown]
# ## Check
#
# The comparison simulates finite populations. A population round has N interactions and takes a time of 2 in the rate
# equation.

# %%
comparisons = {}
for policy in meanfield.each_policy(policies):
    solution = meanfield.solve(policy)
    runs = validation.simulate(policy, n_agents=[24, 200, 2000], runs=400, seed=1, record_rounds=30)
    comparisons[policy["pair"].item()] = validation.compare(solution, runs)
    print(validation.comparison.comparison_table(comparisons[policy["pair"].item()]))

# %% [markdown]
# ## Plot

# %%
figure, axes = plt.subplots(1, len(comparisons), figsize=(10, 3), sharey=True, layout="constrained")
for axis, (pair, comparison) in zip(axes, comparisons.items(), strict=True):
    word, _ = pair.split("/")
    first = comparison.sel(word=word)
    for n_agents in first["n_agents"].values:
        axis.plot(first["round"], first["simulated"].sel(n_agents=n_agents), label=f"N = {n_agents:,}")
    axis.plot(first["round"], first["theory"], "k--", label="rate equation")
    axis.set(xlabel="population round", title=f"share of '{word}'", ylim=(0, 1.02))
axes[0].legend()
figure
