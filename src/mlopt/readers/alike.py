"""What a file must be to be read in blocks."""

from __future__ import annotations

from mlopt.errors import InputError


class NotAlikeError(InputError):
    """A file whose blocks would not be read as the whole is."""
