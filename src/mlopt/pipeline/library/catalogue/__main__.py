"""Print docs/operators.md."""

import sys

from mlopt.pipeline.library.catalogue.page import page

sys.stdout.write(page())
