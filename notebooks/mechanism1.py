# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
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
# ## What small groups predict
#
# A fit is one point; how far can the data be trusted beyond it? `posterior` draws parameters by NUTS (numpyro), weighs
# them by runs of the exact simulator, and plays each at other sizes. Its result has the groups that ArviZ plots. Here
# it sees teams of 4 and 8 agents only. Do its predictions hold the teams of 16 to 64?

# %%
small = counts[counts["N"] <= 8]
drawn = mechanism1.posterior(small, free=["mean_R", "sd_0", "J"], predict=[16, 32, 64], draws=100, warmup=100)
predicted = drawn["posterior_predictive"]["probability"].sel(endpoint="correct_consensus")
band = predicted.quantile([0.05, 0.25, 0.5, 0.75, 0.95], ["chain", "draw"])

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
axes[0].hist(drawn["posterior"]["J"].values.ravel(), bins=30, color="0.6")
axes[0].axvline(mechanism1.APPENDIX_E.J, color="black", linestyle="--", label="the paper's")
axes[0].set(xlabel="coupling J", ylabel="draws")
axes[0].legend()
for low, high, shade in ((0, 4, 0.85), (1, 3, 0.7)):
    axes[1].fill_between(predicted["n_agents"], band[low], band[high], color=str(shade), linewidth=0)
axes[1].plot(predicted["n_agents"], band[2], color="0.3", label="median of the posterior")
for rows, filled in ((small, True), (counts[counts["N"].between(16, 64)], False)):
    share = rows["correct_consensus_count"] / rows["seeds"]
    error = np.sqrt(share * (1 - share) / rows["seeds"])
    label = "seen" if filled else "not seen"
    axes[1].errorbar(rows["N"], share, error, fmt="o", color="C0", fillstyle="full" if filled else "none", label=label)
axes[1].set(xscale="log", xlabel="number of agents N", ylabel="teams that agree on the truth", ylim=(0, 1))
axes[1].set_xticks(predicted["n_agents"].values, predicted["n_agents"].values)
axes[1].minorticks_off()
axes[1].legend()
print(f"{drawn['posterior'].attrs['effective_share']:.0%} of the draws count")

# %% [markdown]
# The bands of 50 and 90 % hold nearly all teams, but say little: from 32 agents on almost everything is possible. Large
# teams depend on parameters that small teams do not determine.

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
