"""Checks of a policy: warnings, questions about the prompt, and texts that the model writes."""

from policy_extraction.checks._asked_again import asked_again as asked_again
from policy_extraction.checks._check_policy import check_policy as check_policy
from policy_extraction.checks._check_policy import policy_warnings as policy_warnings
from policy_extraction.checks._comprehension import KINDS as KINDS
from policy_extraction.checks._comprehension import comprehension as comprehension
from policy_extraction.checks._generation import generation_test as generation_test
from policy_extraction.checks._live_population import live_population as live_population
