"""Does with clickhouse-connect and its dialect of SQLAlchemy what Superset does.

Arguments: the URL of SQLAlchemy, the account and its password. Standard input has statements, each ended by U+0000. Prints one
object of JSON.
"""

import json
import sys
from datetime import datetime, timezone

import clickhouse_connect
import sqlalchemy

url, user, password = sys.argv[1:]
address = sqlalchemy.make_url(url)


def outcome(client, sql):
    """What a statement returns: the number of its rows and the beginning of them, or an error."""
    try:
        rows = 0
        first = ""
        with client.query_rows_stream(sql) as stream:
            for row in stream:
                rows += 1
                if rows <= 100:
                    first += " ".join(str(value) for value in row) + " "
        return {"rows": rows, "first": first}
    except Exception as error:
        return {"error": str(error)}


client = clickhouse_connect.get_client(
    host=address.host, port=address.port, database=user, username=user, password=password, client_name="superset"
)
result = {}

engine = sqlalchemy.create_engine(url)
inspector = sqlalchemy.inspect(engine)
result["schemas"] = [[name] for name in inspector.get_schema_names()]
tables = inspector.get_table_names(user) + inspector.get_view_names(user)
names = sorted(set(tables))
result["tables"] = [[name, inspector.get_table_comment(name, user)["text"]] for name in names]
result["columns"] = [
    [table, column["name"], str(column["type"]), column.get("comment")]
    for table in names
    for column in inspector.get_columns(table, user)
]
with engine.connect() as connection:
    count = sqlalchemy.text("SELECT count(*) FROM events WHERE user_id = :user")
    result["own"] = connection.execute(count, {"user": "o'hara\\"}).scalar()

row = client.query(
    "SELECT timestamp, received_at, uuid, event, user_id, properties FROM events WHERE user_id = 'jane' ORDER BY timestamp LIMIT 1"
).first_row
result["values"] = [[type(value).__name__, str(value)] for value in row]
prepared = client.query(
    "SELECT event, count() FROM events WHERE user_id = {user:String} AND timestamp >= {start:DateTime64(3)} AND timestamp < {end:DateTime64(3)} GROUP BY event",
    parameters={
        "user": "o'hara\\",
        "start": datetime(2026, 3, 1, tzinfo=timezone.utc),
        "end": datetime(2026, 4, 1, tzinfo=timezone.utc),
    },
)
result["prepared"] = [list(found) for found in prepared.result_rows]
zone = client.query(
    "SELECT toDateTime('2026-03-01 00:30:00') = toDateTime('2026-02-28 23:30:00', 'UTC')",
    settings={"session_timezone": "Europe/Berlin"},
)
result["zone"] = [[str(value) for value in found] for found in zone.result_rows]
result["statements"] = [outcome(client, sql) for sql in sys.stdin.read().split("\0") if sql != ""]
print(json.dumps(result))
