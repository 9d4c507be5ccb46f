# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Which rule does my model play?
#
# A policy with memories of five interactions is a table of 1,365 probabilities. Does a rule of a few parameters say the
# same? And do populations that play the rule end like populations that play the table? This notebook asks both of
# SmolLM2-135M, and then finds a rule from what populations say, without a single recorded choice.

# %%
import matplotlib.pyplot as plt
import pandas as pd

import meanfield
import validation
from theory.naming_game import fit_rule, fit_runs, rule_policy, summary

policy = meanfield.datasets.smollm2().sel(pair="his/her")

# %% [markdown]
# ## Rules for a table
#
# Each rule adds to the log-odds of 'his': win-stay lose-shift looks at the last interaction, 'primacy' at the oldest
# one, 'majority' at all that was heard, and 'counts' at all that was said and heard. Which part of the table's
# information do they explain, weighted by the memories that agents really have?

# %%
fit = fit_rule(policy, rule=["win_stay_lose_shift", "primacy", "majority", "counts"])
columns = ["n_parameters", "explained", "held_out_loss", "kappa", "conventions"]
table = fit[columns].to_dataframe()[columns].astype({"explained": float}).round(3)
print("best by choices that were held out:", fit["best"].item())
table

# %% [markdown]
# SmolLM2 repeats the word that it said longest ago, a little, and hardly listens: 'own' is large and 'heard' is not.

# %%
summary(fit.sel(rule=["primacy"])).round(2)

# %% [markdown]
# Where is the rule wrong? Each point is a memory, its area the share of agents who have it. On the diagonal rule and
# table agree.

# %%
best = fit.sel(rule=fit["best"].item())
figure, axis = plt.subplots(figsize=(5, 4.5), layout="constrained")
axis.plot([0, 1], [0, 1], color="0.7", linewidth=1)
axis.scatter(policy["q"].isel(word=0), best["q"], s=3000 * fit["weight"], alpha=0.4, edgecolors="none")
axis.set(xlabel="probability of 'his' in the table", ylabel=f"by '{fit['best'].item()}'", xlim=(0, 1), ylim=(0, 1))
missed = best[["missed_memory", "missed_q", "missed_rule_q", "missed_share"]].to_dataframe()
missed[["missed_memory", "missed_q", "missed_rule_q", "missed_share"]].round(3)

# %% [markdown]
# ## The same collective?
#
# κ says how strongly groups lean to a word: 'his' is ahead in groups of N agents with probability Φ(κ√N). A rule that
# explains choices need not have it. It is infinite for agents who hardly react: their groups never lean the other way.

# %%
print(f"table: {fit['table_strong_word'].item()} by {fit['table_kappa'].item():.3f}, {fit['table_conventions'].item()}")
for rule, strong, kappa in zip(fit["rule"].values, fit["strong_word"].values, fit["kappa"].values, strict=True):
    print(f"{rule:20} {strong} by {kappa:.3f}")

# %% [markdown]
# ## Rules from populations alone
#
# Often only what populations said is known. Here 120 groups of 50 agents play win-stay lose-shift with memories of one
# interaction. `fit_runs` takes the share of 'A' among the words said in each round: its mean says what agents prefer,
# and how noise grows and lasts says how they react.

# %%
parameters = {"empty": 0.3, "bias": 0.2, "stay": 2.0, "shift": 0.5}
made_up = rule_policy("win_stay_lose_shift", parameters, ["A", "B"], memory_length=1)
runs = validation.simulate(made_up, n_agents=50, runs=120, seed=1, max_rounds=12, record_rounds=12, record=["said"])
fits = {rule: fit_runs(runs, rule=rule, memory_length=1) for rule in ("win_stay_lose_shift", "imitation")}
for rule, one in fits.items():
    print(f"{rule}: {one.sizes['mode']} modes, residuals p = {one['p_value'].item():.1g}")
pd.concat({rule: summary(one).round(2) for rule, one in fits.items()})

# %% [markdown]
# The sign of 'shift' stays open, since after failures as many agents have said one word as the other. Residuals refute
# imitation (p), although its mean is as good: what tells the rules apart is the noise of the groups.

# %%
share = runs["said"].sel(word="A", n_agents=50, round=slice(1, None))
figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
axis.plot(share["round"], share.T, color="0.8", linewidth=0.6)
for (rule, one), style in zip(fits.items(), ("-", "--"), strict=True):
    axis.plot(one["round"], one["mean"].squeeze(), style, label=f"mean by {rule}")
axis.set(xlabel="round", ylabel="share of 'A' in what is said", title="120 groups of 50 agents, and two fits")
axis = axis.legend()
