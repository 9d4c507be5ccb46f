"""Measuring policies: records, their cache, sampling, and variants of the prompt."""

from policy_extraction.measuring._active.measure import measure as measure
from policy_extraction.measuring._active.measure import sample_policies as sample_policies
from policy_extraction.measuring._cost import cost as cost
from policy_extraction.measuring._extract import extract as extract
from policy_extraction.measuring._flips import flip_table as flip_table
from policy_extraction.measuring._lazy import lazy_policy as lazy_policy
from policy_extraction.measuring._listener import listener as listener
from policy_extraction.measuring._predicted.predicted_policy import predicted_policy as predicted_policy
from policy_extraction.measuring._record import policy_from_record as policy_from_record
from policy_extraction.measuring._robustness import robustness as robustness
from policy_extraction.measuring._sampling import Sampling as Sampling
from policy_extraction.measuring._tempered import tempered as tempered
from policy_extraction.measuring._variants import newest_first as newest_first
from policy_extraction.measuring._variants import prompt_variants as prompt_variants
from policy_extraction.measuring._variants import standard_variants as standard_variants
from policy_extraction.measuring._variants import unquoted as unquoted
from policy_extraction.measuring._variants import variant_table as variant_table
