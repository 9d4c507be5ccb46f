"""The prompts of a measurement: templates, payoffs, and the orders in which words are presented."""

from policy_extraction.prompts._orders import orders as orders
from policy_extraction.prompts._template import NAMING_GAME as NAMING_GAME
from policy_extraction.prompts._template import TEMPLATES as TEMPLATES
from policy_extraction.prompts._template import Payoffs as Payoffs
from policy_extraction.prompts._template import Prompt as Prompt
from policy_extraction.prompts._template import Template as Template
from policy_extraction.prompts._template import load_template as load_template
