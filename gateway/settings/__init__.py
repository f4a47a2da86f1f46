"""What an operator may write: typed, frozen settings from the environment, a TOML file and defaults.

Every value is checked before anything starts. What a setting does is decided in the room that reads it.
"""

from gateway.settings.fault import Fault
from gateway.settings.loading import Loaded, load
from gateway.settings.models import Model, Variant
from gateway.settings.overrides import faults
from gateway.settings.problems import SettingsError
from gateway.settings.schema import Settings
from gateway.settings.sections import (
    Admission,
    Batches,
    Budgets,
    DefaultLimits,
    Engine,
    Files,
    Limits,
    Log,
    Policy,
    Server,
    Usage,
)

__all__ = [
    "Admission",
    "Batches",
    "Budgets",
    "DefaultLimits",
    "Engine",
    "Fault",
    "Files",
    "Limits",
    "Loaded",
    "Log",
    "Model",
    "Policy",
    "Server",
    "Settings",
    "SettingsError",
    "Usage",
    "Variant",
    "faults",
    "load",
]
