# Sends events with posthog (Python), in a process of its own.
import json
import sys
import time
from datetime import datetime

from posthog import Posthog


def decode(value):
    if "$date" in value:
        return datetime.fromisoformat(value["$date"].replace("Z", "+00:00"))
    return value


run = json.loads(sys.argv[1], object_hook=decode)
errors = []


def on_error(error, _events):
    errors.append(str(error))


client = Posthog(run["key"], host=run["url"], on_error=on_error, flush_at=3)
for step in run["calls"]:
    if step["do"] == "capture":
        client.capture(
            event=step["event"],
            distinct_id=step["distinctId"],
            properties=step["properties"],
            groups=step.get("groups"),
            timestamp=step.get("timestamp"),
        )
    elif step["do"] == "identify":
        # Since version 6 there is no identify any more.
        identify = getattr(client, "identify", client.set)
        identify(distinct_id=step["distinctId"], properties=step["set"])
        client.set_once(distinct_id=step["distinctId"], properties=step["setOnce"])
    elif step["do"] == "group":
        client.group_identify(step["type"], step["key"], step["properties"])
    else:
        client.alias(previous_id=step["alias"], distinct_id=step["distinctId"])
    time.sleep(run["paceMs"] / 1000)
client.shutdown()
delivered = [] if errors else list(range(len(run["calls"])))
print(json.dumps({"errors": errors, "delivered": delivered}))
