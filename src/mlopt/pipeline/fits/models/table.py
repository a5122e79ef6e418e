"""Ways of fitting models: the first of each class is what runs when nothing is chosen."""

from __future__ import annotations

from mlopt.pipeline.fits.base import Fit
from mlopt.pipeline.fits.models.classifiers import CLASSIFIERS
from mlopt.pipeline.fits.models.clusters import CLUSTERS
from mlopt.pipeline.fits.models.components import COMPONENTS
from mlopt.pipeline.fits.models.descriptors import DESCRIPTORS
from mlopt.pipeline.fits.models.discriminant import DISCRIMINANT
from mlopt.pipeline.fits.models.own import OWN
from mlopt.pipeline.fits.models.regressions import REGRESSIONS

MODELS: tuple[Fit, ...] = (
    *CLASSIFIERS,
    *REGRESSIONS,
    *COMPONENTS,
    *CLUSTERS,
    *DESCRIPTORS,
    *DISCRIMINANT,
    *OWN,
)
