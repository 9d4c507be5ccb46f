"""Quantized Simplex Gossip in closed form: how fast diversity is lost, and which of two labels takes over."""

from theory.flag_game.gossip._closed_forms import BIASES as BIASES
from theory.flag_game.gossip._closed_forms import decay_rate as decay_rate
from theory.flag_game.gossip._closed_forms import drift as drift
from theory.flag_game.gossip._closed_forms import fixation as fixation
from theory.flag_game.gossip._closed_forms import heterozygosity as heterozygosity
