# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Rare events: tails, lifetimes, and the smallest change that flips a convention
#
# What happens once in a million runs? And after a million rounds? Simulation doesn't say; the action of fluctuations
# does. The examples are pairs of GPT-4o, published with [004].

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import meanfield
import validation

policies = meanfield.datasets.llm_group_size().sel(model="gpt-4o")
policy = policies.sel(pair="more/less")

# %% [markdown]
# ## The tail of the group-size law
#
# How likely do all agents end at the weak word, 'more'? Φ(κ√N) has the least action, and order 2 all fluctuations about
# its path. Splitting runs populations that come far again and again, without bias; its bars are two standard errors.

# %%
sizes = np.unique(np.geomspace(10, 500, 40).astype(int))
laws = {order: meanfield.group_size_law(policy, n_agents=sizes, order=order) for order in (1, 2)}
simulated = validation.simulate(policy, n_agents=[10, 24, 50], runs=100_000, seed=1)["consensus_word"]
direct = (simulated == "more").mean("run")
rare = [validation.rare_event(policy, "more", n_agents=n, runs=400, seed=1) for n in (120, 240, 460)]

figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
for order, style in ((1, "--"), (2, "-")):
    axis.plot(sizes, np.exp(laws[order]["log_weak_probability"]), f"k{style}", label=f"order {order}")
axis.plot(direct["n_agents"], direct, "o", label="100,000 runs")
chances, errors = (np.array([one[name].item() for one in rare]) for name in ("probability", "relative_error"))
where = [one["n_agents"].item() for one in rare]
axis.errorbar(where, chances, yerr=2 * errors * chances, fmt="s", label="splitting")
axis.set(xscale="log", yscale="log", xlabel="agents", ylabel="probability of 'more'")
axis.legend()

exact = {order: meanfield.group_size_law(policy, n_agents=where, order=order) for order in (1, 2)}
table = {"splitting": chances, "its relative error": errors}
for order, law in exact.items():
    table[f"order {order} / splitting"] = np.exp(law["log_weak_probability"].values) / chances
pd.DataFrame(table, index=pd.Index(where, name="agents"))

# %% [markdown]
# ## How long a convention lives
#
# Published policies hardly ever err at a consensus, so that it lasts forever. Let agents answer at random once in ten
# times. Their conventions then end after a time that grows as prefactor · exp(N · barrier).

# %%
erring = meanfield.make_policy(0.8 * policies.sel(pair="woman/man")["q"].values + 0.1, ["woman", "man"])
found = meanfield.lifetime(erring, n_agents=[10, 24, 100, 1000])
table = found[["barrier", "prefactor"]].to_dataframe()[["barrier", "prefactor"]]
table.insert(0, "share of 'woman'", found["word_share"].sel(word="woman").values)
table.join(found["lifetime"].to_pandas().add_prefix("N = "))

# %% [markdown]
# Lifetimes are in rounds. In the likeliest fluctuation that ends 'woman' agents say the other word more often than by
# chance, until the saddle is reached. From there on no more luck is needed.

# %%
path = meanfield.escape_path(erring, fixed_point=int(found["fixed_point"][0]))
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
meanfield.plot(found, axes[0])
meanfield.plot(path, axes[1])
print(f"barrier {path.attrs['barrier']:.5f} ± {path.attrs['barrier_error']:.0e}")

# %% [markdown]
# ## A minority and a deadline
#
# How many committed agents flip N within 30 rounds? Simulation answers. Beyond the critical mass (`mean_field`) an
# infinite population leaves the old word, but slowly at first. The deadline asks for more.

# %%
pair = policies.sel(pair="woman/man")
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
found = {}
for number, n_agents in enumerate([24, 48, 96]):
    flips = validation.naming_game.committed_minority(
        pair, n_agents=n_agents, word="man", numbers=range(1, n_agents // 4), runs=1000, seed=1
    )
    meanfield.plot(flips, axis, view="fraction", color=f"C{number}")
    found[n_agents] = {name: flips[name].item() for name in ("smallest", "mean_field")}
pd.DataFrame(found).T.rename_axis("n_agents")

# %% [markdown]
# ## The smallest change that flips it
#
# Which change of the policy makes 'man' the strong word, and differs least from what GPT-4o says? The change that is
# found stands at the boundary; the memories that change most come first.

# %%
changed = meanfield.design(pair, of="kappa", value=-0.05)
before, after = (changed[name].item() for name in ("value_before", "value_after"))
print(f"{changed['total_cost'].item():.2g} nats an answer, κ from {before:.4f} to {after:.4f}")

memories = changed[["memory", "change", "cost"]].isel(state=slice(6)).to_dataframe()
memories.set_index("memory")[["change", "cost"]].round(6)

# %% [markdown]
# `change` belongs to the probability of 'woman'. The changed policy is an ordinary one. Do simulated groups follow the
# prediction?

# %%
ends = {}
for name, one in (("before", pair), ("after", changed)):
    predicted = meanfield.group_size_law(one, n_agents=[100], order=2)
    chance = predicted["probability"].item()
    man = chance if predicted["strong_word"].item() == "man" else 1 - chance
    words = validation.simulate(one, n_agents=100, runs=20_000, seed=2)["consensus_word"]
    ends[name] = {"predicted": man, "simulated": (words == "man").mean().item()}
pd.DataFrame(ends).T.rename_axis("ends at 'man'").round(4)
