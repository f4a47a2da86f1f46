"""What Alembic runs a migration with: the connection and the transaction of `gateway.store.migrate`."""

from alembic import context

from gateway.store.usage_schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite alters a table by copying it
)
context.run_migrations()
