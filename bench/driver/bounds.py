# SPDX-License-Identifier: MIT
"""The table of bounds: bench/bounds."""
import os


def load(folder):
    """{figure: (bound, unit, what it is compared with)}"""
    bounds = {}
    with open(os.path.join(folder, "bounds"), encoding="utf-8") as f:
        for line in f:
            line = line.split("#")[0].strip()
            if line:
                name, bound, unit, text = line.split(None, 3)
                bounds[name] = (float(bound), unit, text)
    return bounds
