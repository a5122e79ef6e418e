"""A table whose classes follow from its columns."""

from __future__ import annotations

import numpy as np
import pandas as pd


def people(rows: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, rows)
    city = random.choice(["rome", "oslo", "bern"], rows)
    wage = random.lognormal(3, 1, rows)
    wage[::7] = np.nan
    code = random.integers(1, 4, rows)
    buys = np.where(age + 20 * (city == "oslo") + 5 * code > 55, "yes", "no")
    return pd.DataFrame(
        {"age": age, "city": city, "wage": wage, "code": code, "buys": buys}
    )
