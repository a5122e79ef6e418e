"""Data as blocks of rows, in process or on Dask workers."""

from mlopt.rows.block import Block
from mlopt.rows.rows import Rows

__all__ = ["Block", "Rows"]
