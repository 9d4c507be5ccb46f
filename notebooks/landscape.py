# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # The landscape of a policy: attractors, committed minorities and group size
#
# The policy alone tells where a population can rest, what decides between these places, and how many agents it takes to
# change them. The example is {woman, man} of GPT-4o, published with [004].

# %%
import matplotlib.pyplot as plt

import meanfield

policies = meanfield.datasets.llm_group_size()
policy = policies.sel(model="gpt-4o", pair="woman/man")

# %% [markdown]
# ## Fixed points and their basins
#
# Where can a large population rest? On either word: an unstable fixed point lies between the two. The first panel shows
# how the share of 'woman' changes, and the last one what the start decides if some agents remember 'woman' only and the
# others 'man' only.

# %%
points = meanfield.fixed_points(policy)
figure, axes = plt.subplots(1, 3, figsize=(14, 3.4), layout="constrained")
meanfield.plot(policy, axes[0], view="flow")
meanfield.plot(points, axes[1])
meanfield.plot(meanfield.basins(policy), axes[2], view="separatrix")

table = points[["convention", "eigenvalue", "stability"]].to_dataframe()[["convention", "eigenvalue", "stability"]]
table.assign(woman=points["word_share"].sel(word="woman").values).round(6)

# %% [markdown]
# `fixed_points` finds all of them; `points.attrs["completeness"]` says how this is known.
#
# ## A committed minority
#
# A fraction c of the agents always says 'man'. How many does it take to turn the others? Let Q be the share of 'man'
# among spoken words, and f(Q) the share among the other agents once they are stationary. Then Q = (1 - c) f(Q) + c
# gives c as a function of Q: the whole diagram, unstable branches included. Its fold is the critical mass, above which
# 'woman' can't persist.

# %%
critical = meanfield.critical_mass(policy, word="man")
figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained", subplot_kw={"xlim": (-0.01, 0.4)})
meanfield.plot(meanfield.bifurcation(policy, word="man"), axis)
meanfield.plot(critical, axis)
print(f"'woman' falls to {critical['critical_mass'].item():.4f} agents committed to 'man'")

# %% [markdown]
# Does the rate equation agree? With 5 % fewer committed agents (left) it stays at 'woman', with 5 % more (right) it
# lingers for 40 rounds and leaves.

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), layout="constrained")
for factor, axis in zip((0.95, 1.05), axes, strict=True):
    population = meanfield.Population(policy, committed={"man": factor * critical["critical_mass"].item()})
    meanfield.plot(meanfield.solve(population, initial=meanfield.consensus(population, "woman")), axis)

# %% [markdown]
# ## A second model
#
# Llama 3.1 alone always ends at 'woman'. How many Llama agents turn a population of GPT-4o agents who agree on 'man'?

# %%
both = meanfield.Population([policy, policies.sel(model="llama31_70B", pair="woman/man")], fractions=[0.5, 0.5])
mixture = meanfield.critical_mass(both, parameter="fraction", old="man")
figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
meanfield.plot(meanfield.bifurcation(both, parameter="fraction"), axis)
meanfield.plot(mixture, axis)
print(f"'man' falls to a fraction {mixture['critical_mass'].item():.3f} of Llama agents, the last policy")

# %% [markdown]
# ## Group size
#
# In small groups chance decides, in large ones the policy. The probability of ending at 'woman' is Φ(κ√N) to leading
# order, where Φ is the normal distribution function, N the number of agents, and κ follows from the policy. The
# notebook theory_and_simulation holds it against simulated groups.

# %%
law = meanfield.group_size_law(policy)
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
meanfield.plot(law, axis)
print(f"κ = {law['kappa'].item():.5f}: 99 % of groups end at {law['strong_word'].item()!r} "
      f"from N = {law['n_critical'].item():,.0f} on")  # fmt: skip

# %% [markdown]
# ## Memories that make the bias
#
# Which memories tilt the groups to 'woman' (blue), and which to 'man' (red)? `sensitivity` differentiates κ with
# respect to the policy in each memory. The derivative times the bias between the words in this memory is its
# contribution, and the contributions nearly sum to κ. The largest six belong to memories of one or two interactions.

# %%
sensitivity = meanfield.sensitivity(policy, of="kappa")
figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
meanfield.plot(sensitivity, axis, view="contribution")
print(f"contributions sum to {sensitivity['contribution'].sum().item():.4f}, κ = {sensitivity.attrs['value']:.4f}")
