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
# each other. Mechanism 1 of [002] describes them as spins in random fields. This notebook computes the fields of crops,
# fits the mechanism to groups of GPT-4o, and draws its phases.

# %%
import matplotlib.pyplot as plt
import numpy as np

import meanfield
import theory
from theory.flag_game import (
    crop_compatibility,
    crop_fields,
    mechanism1,
    random_field,
    signed_field,
    strongest_rival,
    summary,
)

counts = meanfield.datasets.flag_game("population_scaling_gpt4o")

# %% [markdown]
# ## Fields of crops
#
# How much does each crop of the French flag say? Its field h is the log-odds of France against the strongest rival, for
# an ideal observer. A crop with blue rules Peru out (h = ∞), a crop of red alone speaks for Peru, whose flag has two
# red stripes (h = -log 2), and the others say nothing.

# %%
compatibility = crop_compatibility("France")
rival = strongest_rival(compatibility, "France").country
fields = crop_fields(compatibility, "France", rival)
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
meanfield.plot(fields, axes[0], view="map")
meanfield.plot(fields, axes[1], view="distribution")

h = signed_field(compatibility, "France", rival).values
print(f"{(h > 0).mean():.0%} of the crops speak for France, {(h < 0).mean():.0%} for {rival}")

# %% [markdown]
# ## A large group in such fields
#
# What does a large group conclude? Its mean opinion m solves m = mean tanh(β(h + J m)) with coupling J; infinite fields
# become log 101 = 4.6, the largest that fifty answers can show. Agents who listen a little (J up to 6) agree on France.
# With stronger coupling they may also agree on Peru, and from J = 12 on stay undecided.

# %%
strongest = np.log(101)
diagram = random_field.bifurcation(np.clip(h, -strongest, strongest), beta=mechanism1.APPENDIX_E.beta, max_J=15)
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
meanfield.plot(diagram, axis)
print("folds at J =", ", ".join(f"{J:.2f}" for J in np.sort(diagram["fold_J"].values)))

# %% [markdown]
# ## A fit to measured endpoints
#
# Which parameters do the ends of 40 groups of each size determine? To run in seconds, this fit has five free parameters
# and starts without a search; without `free` all fourteen are free. Four of the five are known within a factor of e,
# the scale of the weight for the truth is not.

# %%
free = ["scale_T", "mean_R", "sd_0", "J", "alpha"]
fit = theory.fit_mechanism1(counts, free=free, starts=0, runs=2000, bootstrap=12)
one = fit.sel(parameter=free)
published = [getattr(mechanism1.APPENDIX_E, name) for name in free]
summary(one).assign(published=published).round(2)

# %% [markdown]
# The same as a plot: the second bar of a parameter is its interval by refits to 12 simulated data sets.

# %%
figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
axis = meanfield.plot(one, axis, view="intervals")

# %% [markdown]
# Does the fitted mechanism describe the groups? Better than the paper's parameters in how many end polarized, worse in
# the accuracy of large groups.

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
meanfield.plot(fit, axes[0], view="polarization")
meanfield.plot(fit, axes[1], view="accuracy")
log_likelihood, paper = (fit.attrs[name] for name in ("log_likelihood", "log_likelihood_paper"))
print(f"log-likelihood {log_likelihood:.1f}, with the paper's parameters {paper:.1f}")

# %% [markdown]
# Does a simpler model do as well? Agents copy each other among zealots, whose number grows like a power of N. Its AIC
# is smaller, although nine parameters of the mechanism stayed at values that the paper fitted to these very groups.

# %%
copying = mechanism1.fit_copying(counts)
print(f"AIC {copying.attrs['aic']:.1f} with 3 parameters, against {fit.attrs['aic']:.1f}")

# %% [markdown]
# ## Phases in (N, J)
#
# How often do the random fields of N agents allow two stable states, one for the truth and one for the rival? Never if
# the coupling is weak; from J = 2.5 on always in groups of 64 and more.

# %%
found = mechanism1.Mechanism1.of(fit)
phases = random_field.phase_diagram(
    found.field_law, n_agents=fit["n_agents"].values, J=np.linspace(0.25, 4, 16), beta=found.beta, samples=30
)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis = meanfield.plot(phases, axis)
