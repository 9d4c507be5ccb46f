"""Quantized Simplex Gossip in closed form: how fast diversity is lost, and which of two labels takes over."""

from theory.flag_game.gossip._closed_forms import BIASES as BIASES
from theory.flag_game.gossip._closed_forms import fixation as fixation
from theory.flag_game.gossip._closed_forms import heterozygosity as heterozygosity
