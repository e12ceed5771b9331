-- What a webhook sends: 'events', the changes of an 'alert', or a 'digest', and what clients have set for the latter two, as a JSON
-- object.
ALTER TABLE webhooks
  ADD COLUMN IF NOT EXISTS kind LowCardinality(String) DEFAULT 'events' AFTER id,
  ADD COLUMN IF NOT EXISTS content String AFTER batched
