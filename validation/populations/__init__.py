"""Populations that were really run: policies estimated from their choices, and their predictions."""

from typing import TYPE_CHECKING

from meanfield.toolbox import lazy_package

if TYPE_CHECKING:
    from validation.populations._back_off import back_off_policy as back_off_policy
    from validation.populations._choice_scores import choice_scores as choice_scores
    from validation.populations._empirical_policy import empirical_policy as empirical_policy
    from validation.populations._empirical_policy import sample_policies as sample_policies
    from validation.populations._microscopic_bias import individual_bias as individual_bias
    from validation.populations._microscopic_bias import microscopic_bias as microscopic_bias
    from validation.populations._misalignment import misalignment as misalignment
    from validation.populations._misalignment import neutrality as neutrality
    from validation.populations._mixture import mixture as mixture
    from validation.populations._one_policy import one_policy as one_policy
    from validation.populations._power import power as power
    from validation.populations._sharpness import sharpness as sharpness
    from validation.populations._success_curves import success_curves as success_curves
    from validation.populations._validate import cross_validate as cross_validate
    from validation.populations._validate import report as report
    from validation.populations._validate import validate as validate
    from validation.populations._winners import winners as winners
else:
    __getattr__, __dir__, __all__ = lazy_package(__name__, __file__)
