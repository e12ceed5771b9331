# Makes calls with segment-analytics-python or rudder-sdk-python, in a process of its own.
import importlib
import json
import sys
import time
from datetime import datetime


def decode(value):
    if "$date" in value:
        return datetime.fromisoformat(value["$date"].replace("Z", "+00:00"))
    return value


NAMES = {
    "userId": "user_id",
    "anonymousId": "anonymous_id",
    "groupId": "group_id",
    "previousId": "previous_id",
}

run = json.loads(sys.argv[1], object_hook=decode)
client_class = importlib.import_module(f"{run['module']}.analytics.client").Client
errors = []
failed = set()
indexes = {}


def on_error(error, messages):
    errors.append(str(error))
    failed.update(message["messageId"] for message in messages)


client = client_class(run["key"], host=run["url"], on_error=on_error)
for index, call in enumerate(run["calls"]):
    arguments = {NAMES.get(name, name): value for name, value in call.items() if name != "type"}
    _, message = getattr(client, call["type"])(**arguments)
    indexes[message["messageId"]] = index
    time.sleep(run["paceMs"] / 1000)
client.shutdown()
delivered = [index for message_id, index in indexes.items() if message_id not in failed]
print(json.dumps({"errors": errors, "delivered": delivered}))
