"""Loads the files of a folder with SciPy and compares each with the matrix of make.py; tells how many there were."""

import os
import sys

import numpy as np
import scipy.sparse as sp

from make import DENSE

names = sorted(os.listdir(sys.argv[1]))
for name in names:
    layout, value_type = name.removesuffix(".npz").split("-")[:2]
    matrix = sp.load_npz(os.path.join(sys.argv[1], name))
    expected = DENSE * (1 + 2j) if value_type.startswith("complex") else DENSE
    assert matrix.format == layout, (name, matrix.format)
    assert matrix.dtype == value_type, (name, matrix.dtype)
    assert np.array_equal(matrix.toarray(), expected), (name, matrix.toarray())
    assert np.array_equal(matrix @ np.ones(6, matrix.dtype), expected.sum(axis=1)), name
print(len(names), "files")
