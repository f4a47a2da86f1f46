"""How properties are searched here."""

from hypothesis import settings

# A busy machine makes an example slow, not wrong; the same examples each time make a failure everybody's.
settings.register_profile("policy", deadline=None, derandomize=True, database=None)
settings.load_profile("policy")
