# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # What will this population do?
#
# From a table of who said what to whom to forecasts of runs that nobody has paid for yet. The example is Llama 3 70B
# with the words M and Q, run by the authors of [001]. A log of your own gives the same table:
# [ten lines](../docs/how_to/events.md) do it.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import meanfield
import validation
from validation import populations

published = meanfield.datasets.ai_norms(ordered=True)
runs = published.runs.query(
    "model == 'llama3' and options == 'Q M' and memory_length == 5 and experiment == 'from_empty'"
)
events = published.events[published.events["run"].isin(runs["run"])]
events.head(3)

# %% [markdown]
# ## The table becomes runs
#
# Memories are rebuilt from the events. There are 40 runs of 24 agents and 10 of 200.

# %%
sizes = runs.set_index("run")["n_agents"].to_dict()
real = meanfield.datasets.from_events(events, memory_length=5, words=["Q", "M"], n_agents=sizes, model="llama3")
populations.winners(real.runs)[["n_agents", "word", "wins", "runs", "low", "high"]]

# %% [markdown]
# ## Their policy
#
# How often does an agent say each word in each memory state? States that were seen often have narrow intervals.

# %%
policy = populations.empirical_policy(real.choice_counts)
figure, axes = plt.subplots(1, 2, figsize=(12, 3.8), layout="constrained")
meanfield.plot(policy, axes[0], view="posterior")
meanfield.plot(policy, axes[1], view="flow")
plt.show()

# %% [markdown]
# ## Does memory explain what they say?
#
# Half of the runs predict single choices in the other half. The policy has to beat simple laws, or it is not needed.

# %%
scores = populations.choice_scores(real)
meanfield.plot(scores)
scores.set_index("law")[["log_likelihood", "gain", "gain_low", "gain_high"]].round(3)

# %% [markdown]
# ## Do some runs predict the others?
#
# First half of the runs predict the other half, then the small groups predict the large ones and the reverse.

# %%
halves = populations.cross_validate(real, draws=20)
other_size = populations.cross_validate(real, by="experiment", draws=20)
columns = ["fold", "n_agents", "quantity", "runs", "observed", "predicted", "p_value", "verdict"]
pd.concat([halves, other_size])[columns].round(3)

# %% [markdown]
# ## Groups that nobody has run
#
# Twenty policies drawn from the posterior play groups of other sizes. Their spread is what the runs leave open. The
# group-size law gives the probability of M at all sizes at once, from the mean policy.

# %%
draws = populations.sample_policies(policy, 20, seed=0)
sizes = [4, 6, 12, 50]
wins = [
    (validation.simulate(draw, n_agents=sizes, runs=400, seed=1)["consensus_word"] == "M").mean("run").values
    for draw in draws
]
pd.DataFrame(np.quantile(wins, [0.05, 0.5, 0.95], axis=0), ["5 %", "median", "95 %"], sizes).round(3)

# %%
law = meanfield.group_size_law(policy, n_agents=[2, 4, 6, 12, 24, 50, 100])
meanfield.plot(law)
print(f"strong word {law['strong_word'].item()}, κ = {law['kappa'].item():.2f}")

# %% [markdown]
# ## Committed agents
#
# How large a fraction of agents who only say Q turns a population that has settled on M?

# %%
masses = [meanfield.critical_mass(draw, word="Q", old="M")["critical_mass"].item() for draw in draws]
low, middle, high = np.quantile(masses, [0.05, 0.5, 0.95])
f"critical mass of Q: {middle:.3f}, 90 % of the draws from {low:.3f} to {high:.3f}"

# %% [markdown]
# ## The next experiment
#
# Before more runs are paid for: how likely do they call the bias, and how many does it take?

# %%
plan = populations.power(policy, n_agents=[6, 12, 24], runs=[5, 10, 20, 40])
meanfield.plot(plan)
print("\n".join(populations.report(plan[plan["runs"] == 10])))
