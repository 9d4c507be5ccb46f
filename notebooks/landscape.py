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
# # The landscape of a policy: attractors, what moves them, and what group size decides
#
# Everything here follows from the policy alone; the last section holds it against simulated populations.

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
# All of them: `completeness` says how that is known. A basin here is a range of s, the share of agents who come with
# memories of 'woman' only, among others with memories of 'man' only.

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
# With a fraction c of agents who always say 'man', Q = (1 - c) f(Q) + c gives c as a function of Q: the whole diagram,
# unstable branches included. The fold is the critical mass.

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
# A little below the critical mass the rate equation stays at 'woman', a little above it does not.

# %%
for fraction in (0.9, 1.1) * critical["critical_mass"].values:
    population = meanfield.Population(policy, committed={"man": fraction})
    end = meanfield.solve(population, initial=meanfield.consensus(population, "woman"))
    share = end["word_share"].isel(time=-1).sel(word="woman").item()
    print(f"{fraction:.4f} committed: a share {share:.3f} says 'woman' in the end ({end['outcome'].item()})")

# %% [markdown]
# ## A second model
#
# How many Llama agents does it take to turn GPT-4o agents who agree on 'man'?

# %%
both = meanfield.Population([policy, policies.sel(model="llama31_70B", pair="woman/man")], fractions=[0.5, 0.5])
second = meanfield.critical_mass(both, parameter="fraction", old="man")
print(f"critical fraction of the second model: {second['critical_mass'].item():.4f} ({second.attrs['reason']})")

# %% [markdown]
# ## Group size
#
# Large groups end at 'woman', small ones at either word. The chance is Φ(κ√N), to leading order.

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
# As long as the noise is small against the distance to the saddle, mean and variance of the word share follow the
# refined mean field and linear noise.

# %%
rounds = np.arange(5)
theory = meanfield.finite_size(policy, n_agents=[400], times=meanfield.TIME_PER_ROUND * rounds.astype(float))
runs = validation.simulate(policy, n_agents=400, runs=2000, seed=2, record_rounds=5)["word_share"]
print("variance predicted", theory["variance"].sel(n_agents=400, word="woman").values.round(5))
print("variance simulated", runs.sel(n_agents=400, word="woman", round=rounds).var("run").values.round(5))

# %% [markdown]
# ## Which memories make the bias
#
# The derivative of κ to the policy, state by state: where a change of what the model says moves the collective most.

# %%
sensitivity = meanfield.sensitivity(policy, of="kappa")
columns = sensitivity[["memory", "derivative", "bias", "contribution"]].to_dataframe()
largest = columns.sort_values("contribution", key=abs, ascending=False).head(8)
print(largest[["memory", "derivative", "bias", "contribution"]].round(4).to_string(index=False))
print(f"contributions sum to {columns['contribution'].sum():.4f}, κ = {sensitivity.attrs['value']:.4f}")
