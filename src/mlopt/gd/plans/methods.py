"""The ways of solving a task; the optimizer, estimators and pipelines know no others.

A new method is a file with a `Method` of its own, and a line here.
"""

from __future__ import annotations

import copyreg
from typing import Any

from mlopt.gd.operators.references import MORE_PLANS, PLANS
from mlopt.gd.plans.cholesky import CHOLESKY
from mlopt.gd.plans.descents import descent
from mlopt.gd.plans.dual_cholesky import DUAL_CHOLESKY
from mlopt.gd.plans.dual_coordinate import DUAL_COORDINATE
from mlopt.gd.plans.dual_logistic import DUAL_LOGISTIC
from mlopt.gd.plans.dual_newton import DUAL_NEWTON
from mlopt.gd.plans.interior_point import INTERIOR_POINT
from mlopt.gd.plans.lbfgs import LBFGS
from mlopt.gd.plans.method import Method
from mlopt.gd.plans.mixed_cholesky import MIXED_CHOLESKY
from mlopt.gd.plans.newton_cg import NEWTON_CG
from mlopt.gd.plans.newton_cholesky import NEWTON_CHOLESKY
from mlopt.gd.plans.primal_coordinate import PRIMAL_COORDINATE
from mlopt.gd.plans.sketched_cg import SKETCHED_CG
from mlopt.gd.plans.sparse_cg import SPARSE_CG
from mlopt.gd.plans.svd import SVD
from mlopt.gd.plans.working_sets import WORKING_SET

METHODS: tuple[Method, ...] = (
    LBFGS,
    NEWTON_CHOLESKY,
    DUAL_NEWTON,
    NEWTON_CG,
    DUAL_COORDINATE,
    DUAL_LOGISTIC,
    INTERIOR_POINT,
    PRIMAL_COORDINATE,
    WORKING_SET,
    CHOLESKY,
    SVD,
    SPARSE_CG,
    SKETCHED_CG,
    MIXED_CHOLESKY,
    DUAL_CHOLESKY,
    *map(descent, (*PLANS, *MORE_PLANS)),
)
BY_NAME = {method.name: method for method in METHODS}


def _of_name(name: str) -> Method:
    return BY_NAME[name]


def _reduced(method: Method) -> str | tuple[Any, ...]:
    """What prices a method is no module's own; this table is everywhere."""
    if BY_NAME.get(method.name) is method:
        return _of_name, (method.name,)
    return object.__reduce_ex__(method, 2)


copyreg.pickle(Method, _reduced)
