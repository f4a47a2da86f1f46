"""What tells one of our databases from another: all else about their files is the same code."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table

from gateway.errors import KeyStoreUnavailable, UsageStoreUnavailable

Unavailable = type[KeyStoreUnavailable] | type[UsageStoreUnavailable]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of database.

    - `called`: what messages call it. `unavailable`: the error for one that cannot be used.
    - `revision`: the one that this code reads and writes. They are numbers of four digits and only grow.
    - `first`: what brings a missing one about, as the end of a sentence.
    - `pragmas`: what is said on each connection.
    - `is_busy`: written all the time, so that a change of the file's own time tells nothing after a write.
    """

    file_name: str
    called: str
    unavailable: Unavailable
    revision: str
    metadata: MetaData
    migrations: Path
    first: str
    pragmas: tuple[str, ...] = ()
    is_busy: bool = False

    def create(self, connection: Connection) -> None:
        """Makes all tables in an empty database, at the revision that the migrations lead to."""
        # A table that is there already is a foreign one.
        self.metadata.create_all(connection, checkfirst=False)
        revisions = Table(
            "alembic_version",
            MetaData(),  # Alembic's table, not one of the schema
            Column("version_num", String(32), nullable=False),
            PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
        )
        revisions.create(connection)
        connection.execute(revisions.insert().values(version_num=self.revision))
