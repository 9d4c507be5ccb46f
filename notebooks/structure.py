# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Structure: does it matter who meets whom?
#
# The same agents agree at different speeds on different networks, and how much the network matters depends on how long
# agents remember. The agents are GPT-4o, whose choices were published with [004] for memories of up to five
# interactions. Agents with shorter memories have the part of this table without the longer ones.

# %%
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

import meanfield
import validation

N = 16
networks = {  # the more central first
    "star": nx.star_graph(N - 1),
    "everybody": nx.complete_graph(N),
    "scale-free": lambda n, seed: nx.barabasi_albert_graph(n, 2, seed=seed),
    "lattice": nx.grid_2d_graph(4, 4, periodic=True),
    "small world": lambda n, seed: nx.connected_watts_strogatz_graph(n, 4, 0.1, seed=seed),
    "cycle": nx.cycle_graph(N),
}
gpt = meanfield.datasets.llm_group_size().sel(model="gpt-4o")
lengths = range(1, 6)


def shorter(policy, memory_length):
    """Agents with the same choices who remember so many interactions."""
    states = meanfield.MemorySpace(2, memory_length).n_states
    return policy[["q"]].isel(state=slice(0, states)).assign_attrs(memory_length=memory_length)


# %% [markdown]
# ## A look at one game
#
# Agents on a lattice make domains, and the borders move until one word is left.

# %%
lattice = nx.grid_2d_graph(20, 20, periodic=True)
runs = validation.simulate(
    shorter(gpt.sel(pair="woman/man"), 3), n_agents=400, runs=1, seed=3, max_rounds=90, topology=lattice,
    record_rounds=90, record=["node_word_share", "interface_density"],
)  # fmt: skip
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8), layout="constrained")
for axis, when in zip(axes, (1, 10, 30, 90), strict=True):
    now = runs.isel(n_agents=0, run=0).sel(round=when)
    says = now["node_word_share"].isel(word=0).values.reshape(20, 20)
    axis.imshow(says, cmap="coolwarm", vmin=0, vmax=1)
    axis.set(title=f"round {when}, borders {now['interface_density'].item():.2f}", xticks=[], yticks=[])

# %% [markdown]
# ## Sixteen agents
#
# All eleven pairs of words, six networks, memories of one to five interactions, 300 groups each: after how many rounds
# do half of the groups agree? The table has medians over the pairs.

# %%
rows = []
for pair in gpt["pair"].values:
    for length in lengths:
        policy = shorter(gpt.sel(pair=pair), length)
        for name, network in networks.items():
            found = validation.simulate(policy, n_agents=N, runs=300, seed=1, max_rounds=150, topology=network)
            after = found["consensus_round"].fillna(np.inf).median().item()
            rows.append({"pair": pair, "H": length, "network": name, "rounds": after})
table = pd.DataFrame(rows)
median = table.groupby(["network", "H"])["rounds"].median().unstack().loc[list(networks)]
median

# %% [markdown]
# ## What theory says
#
# Where everybody meets everybody: κ, the critical mass of the weak word, and the time in which the rate equation
# reaches a success rate of 95 %, medians over the pairs, beside the simulated time. With one interaction remembered
# most pairs have one convention, κ is large and no critical mass exists: what GPT-4o prefers wins. Longer memories make
# two conventions, and either may win.

# %%
rows = []
when = np.linspace(0, 400, 4001)
for pair in gpt["pair"].values:
    for length in lengths:
        policy = shorter(gpt.sel(pair=pair), length)
        law = meanfield.group_size_law(policy, n_agents=[N])
        strong = law["strong_word"].item()
        mass = np.nan
        if strong:
            weak = next(word for word in pair.split("/") if word != strong)
            mass = meanfield.critical_mass(policy, word=weak)["critical_mass"].item()
        agreed = meanfield.success_rate(meanfield.solve(policy, times=when, max_time=400)["word_share"]) >= 0.95
        rounds = when[agreed.argmax()] / meanfield.TIME_PER_ROUND if agreed.any() else np.inf
        rows.append({"pair": pair, "H": length, "kappa": law["kappa"].item(), "critical mass": mass, "rounds": rounds})
theory = pd.DataFrame(rows)
summary = theory.groupby("H")[["kappa", "critical mass", "rounds"]].median()
summary["pairs with a critical mass"] = theory.groupby("H")["critical mass"].count()
summary["rounds, simulated"] = median.loc["everybody"]
summary.round(2)

# %% [markdown]
# Those who remember two interactions agree faster than those who remember one and follow their last partner. From there
# on the effect of memory changes its sign with the network: with a hub in the middle, and where everybody meets
# everybody, longer memories make groups agree a little faster; in small worlds and above all on a cycle they take
# longer. Agents who remember more follow an average of their neighbours, which defends the border of a domain. Where a
# hub talks to all, there are no borders. The rate equation (dashed) is for groups in which all meet all.
# [Agents on a network](../docs/how_to/networks.md) has the theory of neighbours who meet again, and of groups of
# thousands, whose critical masses shrink where neighbours are few.

# %%
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for name, marker in zip(networks, "*osD^v", strict=True):
    axis.plot(median.columns, median.loc[name], f"{marker}-", label=name)
axis.plot(summary.index, summary["rounds"], "k--", label="rate equation")
axis.set(
    xlabel="interactions remembered, H", ylabel="rounds until half of the groups agree", xticks=list(lengths), ylim=0
)
axis.legend(ncols=2)

# %% [markdown]
# ## Agents who do not listen
#
# SmolLM2 repeats its own words. Where nobody listens, it hardly matters who meets whom, however long agents remember.
# The share of the first word after 30 rounds where everybody meets everybody, and how much it differs between the
# networks, with errors of about 0.01:

# %%
small = meanfield.datasets.smollm2()
rows = []
for pair in ("his/her", "young/old", "tall/short"):
    for length in lengths:
        policy = shorter(small.sel(pair=pair), length)
        share = {}
        for name, network in networks.items():
            found = validation.simulate(
                policy, n_agents=N, runs=500, seed=1, max_rounds=30, topology=network, record_rounds=30
            )
            share[name] = found["word_share"].isel(word=0, round=-1).mean().item()
        spread = max(share.values()) - min(share.values())
        rows.append({"pair": pair, "H": length, "share": share["everybody"], "difference": spread})
pd.DataFrame(rows).pivot(index="pair", columns="H").round(3)
