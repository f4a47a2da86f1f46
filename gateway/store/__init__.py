"""The key database: its file, its migrations, its statements. What a key means is not here."""

from gateway.store.database import Store
from gateway.store.keys import Reader, Row, StoredKey, StoredSecret, Writer
from gateway.store.migrate import Opening

__all__ = ["Opening", "Reader", "Row", "Store", "StoredKey", "StoredSecret", "Writer"]
