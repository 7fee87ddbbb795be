"""Makes the files of this folder with SciPy; what is in them is in ../scipy.rs too."""

import os

import numpy as np
import scipy.sparse as sp

FOLDER = os.path.dirname(os.path.abspath(__file__))
DENSE = np.array([[0, 2, 0, 0, -1, 0], [0, 0, 0, 0, 0, 0], [3, 0, 0, 5, 0, 0], [0, 4, 0, 0, 0, 7]])


def save(name, matrix, **options):
    sp.save_npz(os.path.join(FOLDER, name), matrix, **options)


def wide(matrix):
    for name in ("indptr", "indices"):
        if hasattr(matrix, name):
            setattr(matrix, name, getattr(matrix, name).astype(np.int64))
    return matrix


def make():
    for layout in ("csr", "csc", "coo", "dia"):
        save(layout, sp.csr_matrix(DENSE.astype(np.float64)).asformat(layout))
        save(f"{layout}_array_stored", sp.csr_array(DENSE.astype(np.float32)).asformat(layout), compressed=False)
    save("bsr", sp.bsr_matrix(DENSE.astype(np.float64), blocksize=(2, 3)))
    save("bsr_fortran", sp.bsr_array((np.asfortranarray(np.arange(12.0).reshape(2, 2, 3)), [1, 0], [0, 1, 2]), shape=(4, 6)))
    save("dia_fortran", sp.dia_array((np.asfortranarray([[1.0, 2, 3], [4, 5, 0]]), [1, -1]), shape=(4, 5)))
    save("csr_int64_indices", wide(sp.csr_matrix(DENSE.astype(np.float64))))
    for dtype in ("bool", "int8", "uint8", "int32", "int64", "uint64", "float32", "complex64", "complex128"):
        matrix = sp.csr_matrix(abs(DENSE) if dtype.startswith("u") else DENSE).astype(dtype)
        save(f"csr_{dtype}", matrix * (1 + 2j) if dtype.startswith("complex") else matrix)
    half = sp.csr_matrix(DENSE.astype(np.float32))
    half.data = half.data.astype(np.float16)
    save("csr_float16", half)
    unsorted = sp.csr_matrix((np.array([1.0, 0.0, 2.0, 3.0]), [3, 0, 0, 2], [0, 3, 3, 4]), shape=(3, 4))
    save("csr_unsorted", unsorted)
    save("coo_duplicates", sp.coo_matrix((np.array([1.0, 2.0, 0.0]), ([1, 1, 0], [2, 2, 1])), shape=(2, 3)))
    save("empty", sp.csr_matrix((0, 7)))


if __name__ == "__main__":
    make()
