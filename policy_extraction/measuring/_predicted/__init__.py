"""Policies of any number of words, predicted in the memories that were not asked."""
