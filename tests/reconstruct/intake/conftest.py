"""A longer run of the properties: `pytest --hypothesis-profile=long tests/reconstruct/intake/…`."""

from hypothesis import settings

settings.register_profile("long", max_examples=4_000)
