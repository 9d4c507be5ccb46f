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
# # The landscape of a policy: attractors, committed minorities and group size
#
# The theory needs the policy alone. Simulated populations check it where group size matters.

# %%
import matplotlib.pyplot as plt
import numpy as np

import meanfield
import validation

policies = meanfield.datasets.llm_group_size()
policy = policies.sel(model="gpt-4o", pair="woman/man")

# %% [markdown]
# ## Fixed points and their basins
#
# `fixed_points` finds all fixed points of the rate equation; `completeness` says how this is known. The basins refer to
# one family of starts: a share s of the agents remembers 'woman' only, and the others remember 'man' only.

# %%
points = meanfield.fixed_points(policy)
for _, point in points.sel(word="woman").groupby("fixed_point"):
    share, eigenvalue = point["word_share"].item(), point["eigenvalue"].item()
    print(f"share of 'woman' {share:.6f}   λ = {eigenvalue:6.3f}   {point['stability'].item()}")
print(points.attrs["completeness"])
basins = meanfield.basins(policy)
for k, word in enumerate(basins["convention"].values):
    print(f"{basins['fraction'].values[k]:.4f} of this family ends at {word!r}")

# %% [markdown]
# ## A committed minority
#
# A fraction c of the agents always says 'man'. Let Q be the share of 'man' among spoken words, and f(Q) the share among
# the other agents once they are stationary. Then Q = (1 - c) f(Q) + c gives c as a function of Q: the whole diagram,
# unstable branches included. Its fold is the critical mass, above which 'woman' can't persist.

# %%
diagram = meanfield.bifurcation(policy, word="man", spacing=0.05)
critical = meanfield.critical_mass(policy, word="man")
print(f"'woman' falls to {critical['critical_mass'].item():.4f} agents committed to 'man'")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for _, arc in diagram.groupby("arc"):
    for stable, style in ((True, "k."), (False, "r.")):
        part = arc.isel(point=arc["stable"].values == stable)
        left.plot(
            part["parameter"], part["word_share"].sel(word="woman"), style, label="stable" if stable else "unstable"
        )
left.plot(critical["critical_mass"], critical["word_share"].sel(word="woman"), "bo", mfc="none", label="critical mass")
handles, labels = left.get_legend_handles_labels()
unique = dict(zip(labels, handles, strict=True))
left.legend(unique.values(), unique.keys())
left.set(xlabel="fraction committed to 'man'", ylabel="word share of 'woman'", ylim=(-0.03, 1.03))

# %% [markdown]
# The rate equation stays at 'woman' slightly below the critical mass and leaves it slightly above.

# %%
for fraction in (0.9, 1.1) * critical["critical_mass"].values:
    population = meanfield.Population(policy, committed={"man": fraction})
    end = meanfield.solve(population, initial=meanfield.consensus(population, "woman"))
    share = end["word_share"].isel(time=-1).sel(word="woman").item()
    print(f"{fraction:.4f} committed: a share {share:.3f} says 'woman' in the end ({end['outcome'].item()})")

# %% [markdown]
# ## A second model
#
# The critical fraction of Llama agents turns GPT-4o agents who agree on 'man'.

# %%
both = meanfield.Population([policy, policies.sel(model="llama31_70B", pair="woman/man")], fractions=[0.5, 0.5])
second = meanfield.critical_mass(both, parameter="fraction", old="man")
print(f"critical fraction of the second model: {second['critical_mass'].item():.4f} ({second.attrs['reason']})")

# %% [markdown]
# ## Group size
#
# Large groups end at 'woman', and small groups end at either word. The probability to end at 'woman' is Φ(κ√N) to
# leading order, where Φ is the normal distribution function, N the number of agents, and κ follows from the policy.

# %%
law = meanfield.group_size_law(policy)
sizes = [24, 100, 400, 1600]
bias = validation.collective_bias(policy, n_agents=sizes, runs=1000, seed=1)
print(f"κ = {law['kappa'].item():.5f}: 99 % of groups end at {law['strong_word'].item()!r} from N = "
      f"{law['n_critical'].item():,.0f} on")  # fmt: skip
right.semilogx(law["n_agents"], law["probability"], "k-", label="Φ(κ√N)")
low, high = (np.abs(bias["interval"].sel(bound=b) - bias["simulated"]).values[0] for b in ("low", "high"))
right.errorbar(sizes, bias["simulated"][0], yerr=[low, high], fmt="o", capsize=3, label="1,000 simulated groups")
right.set(xlabel="number of agents N", ylabel="chance to end at 'woman'")
right.legend()
figure

# %% [markdown]
# ## Mean and variance among N agents
#
# The refined mean field gives the mean of the word share, and the linear-noise approximation its variance. Both hold
# while the noise is small against the distance to the saddle.

# %%
rounds = np.arange(5)
theory = meanfield.finite_size(policy, n_agents=[400], times=meanfield.TIME_PER_ROUND * rounds.astype(float))
runs = validation.simulate(policy, n_agents=400, runs=2000, seed=2, record_rounds=5)["word_share"]
print("variance predicted", theory["variance"].sel(n_agents=400, word="woman").values.round(5))
print("variance simulated", runs.sel(n_agents=400, word="woman", round=rounds).var("run").values.round(5))

# %% [markdown]
# ## Memories that make the bias
#
# `sensitivity` gives the derivative of κ with respect to the policy in each memory state. A state contributes this
# derivative times its bias between the words, and the contributions nearly sum to κ.

# %%
sensitivity = meanfield.sensitivity(policy, of="kappa")
columns = sensitivity[["memory", "derivative", "bias", "contribution"]].to_dataframe()
largest = columns.sort_values("contribution", key=abs, ascending=False).head(8)
print(largest[["memory", "derivative", "bias", "contribution"]].round(4).to_string(index=False))
print(f"contributions sum to {columns['contribution'].sum():.4f}, κ = {sensitivity.attrs['value']:.4f}")
