"""The errors of mlopt: few, and each says what must hold, what was given, what to do."""

from __future__ import annotations


class MloptError(Exception):
    """Base of every error that mlopt raises on purpose."""


class InputError(MloptError, ValueError):
    """Data or arguments that cannot work."""


class ConfigError(MloptError, ValueError):
    """A configuration file or command line that cannot work: exit status 2."""


class StudyError(MloptError, RuntimeError):
    """A stored study that cannot be opened, or that belongs to another search."""


class TaskError(MloptError, RuntimeError):
    """One task failed for good; the others are not affected."""


class ClusterError(MloptError, RuntimeError):
    """The cluster lost what a run needs: all workers, or its scheduler."""
