"""Data as blocks of rows, in process or on Dask workers."""

from mlopt.rows.block import Block
from mlopt.rows.rows import SHARE, Rows

__all__ = ["SHARE", "Block", "Rows"]
