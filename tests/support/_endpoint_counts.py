"""A small table of endpoints of the Flag Game, as the published one is."""

import pandas as pd


def table(**changes: object) -> pd.DataFrame:
    rows = {
        "N": [4, 16],
        "seeds": [10, 20],
        "correct_consensus_count": [4, 8],
        "wrong_consensus_count": [3, 2],
        "polarization_count": [3, 7],
        "fragmentation_count": [0, 3],
        "final_mean": [0.55, 0.6],
        "final_standard_error": [0.1, 0.08],
    }
    return pd.DataFrame({name: value for name, value in (rows | changes).items() if value is not None})
