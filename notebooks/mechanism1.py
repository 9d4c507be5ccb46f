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
# # Mechanism 1: from crops of a flag to the ends of groups
#
# The agents of a group each see a crop of one flag. A crop favours the true country or a rival, and agents listen to
# each other. Mechanism 1 describes them as spins in random fields. This notebook computes the fields of crops, fits
# the mechanism to measured endpoints, and draws its phases.

# %%
import matplotlib.pyplot as plt
import numpy as np

import meanfield
from theory.flag_game import crop_compatibility, crop_fields, mechanism1, random_field, signed_field, strongest_rival
from theory.flag_game.mechanism1 import APPENDIX_E, Mechanism1, fit_copying
from validation.comparison import wilson_interval

counts = meanfield.datasets.flag_game("population_scaling_gpt4o")

# %% [markdown]
# ## Fields of crops, and P(h)
#
# The field h is the log-odds of the true country against the rival, for an ideal observer who misreads one cell in
# fifty. Fields are cut off at log 101 = 4.6, the largest value that fifty answers can show with half a count added to
# each side.

# %%
compatibility = crop_compatibility("France", noise=0.02, scale=1)
rival = strongest_rival(compatibility, "France").country
fields = crop_fields(compatibility, "France", rival)
strongest = np.log(101)
h = np.clip(signed_field(compatibility, "France", rival).values, -strongest, strongest)
figure, (where, how_often) = plt.subplots(1, 2, figsize=(8, 2.6))
fields["field"].plot(ax=where, cmap="RdBu", yincrease=False)
how_often.hist(h, bins=21, weights=np.full(h.size, 1 / h.size))
how_often.set_xlabel(f"h, France against {rival}")
print(f"{(h > 0.5).mean():.2f} of the crops speak for France, {(h < -0.5).mean():.2f} for {rival}")

# %% [markdown]
# ## A large group in such fields
#
# The mean opinion m of a large group solves m = mean tanh(β(h + J m)) with coupling J. At a fold two solutions meet.

# %%
beta = APPENDIX_E.beta
diagram = random_field.bifurcation(h, beta=beta, max_J=15)
print("folds at J =", np.round(np.sort(diagram["fold_J"].values), 3))
for J in (0.5, 8.0):
    points = random_field.fixed_points(h, J=J, beta=beta)
    states = zip(points["m"].values, points["stability"].values, strict=True)
    print(f"J = {J}:", ", ".join(f"{m:.3f} {stability}" for m, stability in states))

# %% [markdown]
# ## A fit to measured endpoints
#
# To run in seconds, this fit has three free parameters and starts without a search. Without `free` all fourteen
# parameters are free. `determined` and `not_determined` name the parameters that the data do and do not determine.

# %%
free = ("mean_R", "sd_0", "J")
fit = mechanism1.fit(counts, free=free, starts=0, runs=1000, bootstrap=12)
print(f"log-likelihood {fit.attrs['log_likelihood']:.1f}, of the paper's {fit.attrs['log_likelihood_paper']:.1f}")
print("determined:    ", fit.attrs["determined"])
print("not determined:", fit.attrs["not_determined"] or "nothing")
fit[["estimate", "standard_error", "bootstrap_standard_error"]].sel(parameter=list(free)).to_dataframe().round(3)

# %% [markdown]
# A simpler model checks the fit: agents copy each other among zealots, whose number grows like a power of N.

# %%
copying = fit_copying(counts)
print(f"AIC {copying.attrs['aic']:.1f} with 3 parameters, against {fit.attrs['aic']:.1f}")
# The second is too small: eleven parameters stayed at values that the paper fitted to this very sweep.

# %%
figure, (polarised, accuracy) = plt.subplots(1, 2, figsize=(8, 2.8))
one = fit.sel(endpoint="polarization")
seeds = int(fit["seeds"][0])
bars = np.abs(np.array(wilson_interval(one["measured"].values * seeds, seeds, 0.95)) - one["measured"].values)
polarised.errorbar(fit["n_agents"], one["measured"], yerr=bars, fmt="ko", label="GPT-4o")
accuracy.errorbar(fit["n_agents"], fit["measured_accuracy"], yerr=1.96 * fit["measured_accuracy_error"], fmt="ko")
for column, style in (("fitted", "-"), ("paper", "--")):
    polarised.plot(fit["n_agents"], one[column], style, label=column)
    accuracy.plot(fit["n_agents"], fit[f"{column}_accuracy"], style)
for axis, title in ((polarised, "polarised"), (accuracy, "mean accuracy")):
    axis.set(xscale="log", ylim=(0, 1), xlabel="N", title=title)
polarised.legend()

# %% [markdown]
# ## Phases in (N, J)
#
# The table gives the share of field samples with two stable states, one on either side. With more agents such samples
# become the rule.

# %%
found = Mechanism1.of(fit)
sizes = fit["n_agents"].values
phases = random_field.phase_diagram(
    found.field_law, n_agents=sizes, J=np.linspace(0.25, 4, 8), beta=found.beta, samples=30
)
phases["bistable"].to_pandas().T.round(2)
