# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Norms: from the probabilities of operations to their emergence
#
# The agents of [003] detect conflicts, talk, identify norms, check them and comply. For a language model each of these
# is a yes/no question. The probabilities of the answers make a rate equation for each behaviour. It gives the curves of
# the paper's Fig. 2 and the number of entrepreneurs that a norm needs. The last section follows ten agents one by one.
# [How norms emerge](../docs/results/norms.md) has more results, such as the error of the theory for N agents.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import bisect

import meanfield
from paper_figs import norm_society
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
days = np.linspace(0, 2, 193)


def emergence(name, start=None, times=days):
    """Conflicts, thoughts, chats and shares by the rate equation."""
    model = norms.reaction_model(operations, name)
    start = norms.initial_composition(name if start is None else start)
    return norms.observables(model, meanfield.solve(model, initial=start, times=times)["composition"])


curves = {name: emergence(name).sel(standard="for") for name in norms.BEHAVIOURS}
figure, axes = plt.subplots(1, 3, figsize=(13, 3.4), layout="constrained", sharey=True)
for axis, (name, curve) in zip(axes, curves.items(), strict=True):
    curve[["accepted", "complying"]].to_dataframe().drop(columns="standard").plot(ax=axis, title=name, xlabel="day")


def first_day(share, level=0.7):
    """When a share first reaches the level, between two saved times by a straight line; NaN if it does not."""
    first = int(np.argmax(share.values >= level))
    if share.values[first] < level:
        return np.nan
    around = slice(max(first - 1, 0), first + 1)
    return np.interp(level, share.values[around], share["time"].values[around])


pd.DataFrame(
    {
        name: {
            "accepted on day": first_day(curve["accepted"]),
            "complied with on day": first_day(curve["complying"]),
            "reached at the end": curve["reached"][-1].item(),
            "complying at the end": curve["complying"][-1].item(),
            "most conflicts over the first": (curve["conflicts"].max() / curve["conflicts"][0]).item(),
        }
        for name, curve in curves.items()
    }
).T.round(3)

# %% [markdown]
# ## Fixed points
#
# Where do the paper's ten agents end? About smoking they all hold 'for', from any start. About tipping they are evenly
# split: 'for' or 'against' can prevail, and a saddle, where both coexist, separates the two.

# %%
tables = {}
for name in ("smoking", "tipping"):
    model = norms.reaction_model(operations, name)
    points = meanfield.fixed_points(model, initial=norms.initial_composition(name))
    reached = norms.observables(model, points["composition"])["reached"]
    held = {f"hold '{standard}'": reached.sel(standard=standard).values for standard in ("for", "against")}
    columns = ["eigenvalue", "stability"]
    tables[name] = points[columns].to_dataframe()[columns].assign(**held)
pd.concat(tables, names=["behaviour"]).round(3)

# %% [markdown]
# ## Entrepreneurs
#
# How many entrepreneurs does the evenly split norm of tipping need, if 10 % of the agents work for 'against'? A little
# more than 10 %: beyond the threshold 'for' displaces 'against'. If nobody is an entrepreneur, neither standard wins.


# %%
def ahead(leading, opposing=0.1, day=100.0):
    """The share that holds 'for' on that day, less a half; of the ordinary agents three in seven like it."""
    rest = 1 - leading - opposing
    fractions = {("entrepreneur", "for"): leading, ("entrepreneur", "against"): opposing}
    fractions |= {("ordinary", "for"): rest * 3 / 7, ("ordinary", "against"): rest * 4 / 7}
    return emergence("tipping", fractions, [0.0, day])["reached"].sel(standard="for").isel(time=1).item() - 0.5


print(f"fraction of entrepreneurs that it takes: {bisect(ahead, 0, 0.5, xtol=1e-4):.3f}")

nobody = {("ordinary", "for"): 0.5, ("ordinary", "against"): 0.5}
accepted = emergence("tipping", nobody)["accepted"].isel(time=-1).to_series()
print("without entrepreneurs on day 2:", ", ".join(f"{share:.0%} accept '{name}'" for name, share in accepted.items()))

# %% [markdown]
# ## A society of agents with norm databases
#
# What happens in a single society? This simulation follows each agent: norms with utilities, the check in four steps,
# plans, actions, synthesis. Ten agents accept the standards within hours and comply by and by. Here a table answers the
# questions; `NormOperations` beside it answers with a language model, and keeps every prompt.

# %%
society = norm_society.simulate_society(norm_society.TableOperations(operations), encounters=3600, seed=1)
followed = society.sel(standard="for").swap_dims(event="time")
figure, axes = plt.subplots(1, 3, figsize=(13, 3.4), layout="constrained", sharey=True)
for axis, name in zip(axes, norms.BEHAVIOURS, strict=True):
    shares = followed[["accepted", "complying"]].sel(behaviour=name)
    for share, values in shares.items():
        axis.step(values["time"], values, where="post", label=share)
    axis.set(title=name, xlabel="day")
axes[0].legend()
pd.Series(society["what"].values).value_counts()
