"""The rules, one file each, in the order in which they run."""

from mlopt.pipeline.rules.base import Context, Rule
from mlopt.pipeline.rules.choose_ways import ChooseWays
from mlopt.pipeline.rules.convert_layouts import ConvertLayouts
from mlopt.pipeline.rules.drop_unused import DropUnused
from mlopt.pipeline.rules.fuse_rows import FuseRows
from mlopt.pipeline.rules.keep_results import KeepResults
from mlopt.pipeline.rules.share_work import ShareWork

RULES: tuple[Rule, ...] = (
    DropUnused(),
    ShareWork(),
    ChooseWays(),
    ConvertLayouts(),
    KeepResults(),
    FuseRows(),
)

__all__ = ["RULES", "Context", "Rule"]
