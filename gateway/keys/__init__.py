"""Who may call: what a key is, how operators change keys, and the directory that a running server asks."""

from gateway.keys.directory import Callback, Directory
from gateway.keys.key import UNLIMITED, Key, Limit
from gateway.keys.objects import is_deep
from gateway.keys.objects import parse as parse_json
from gateway.keys.ring import Issued, Keyring

__all__ = ["UNLIMITED", "Callback", "Directory", "Issued", "Key", "Keyring", "Limit", "is_deep", "parse_json"]
