"""Active measurement: a posterior over the whole table of a policy, and the memories that tell most about a goal."""
