-- The views of POST /queries: docs/operate/secure.md#sql says how to run this, after accounts.xml is in place. It may be run
-- again, after an upgrade. Each view reads the tables with the rights of its definer, whose row policies leave the rows of one
-- workspace; the views themselves need no condition about that.
CREATE DATABASE IF NOT EXISTS sluice_sql;

-- ClickHouse's functions read nothing at all of a JSON text with a lone surrogate or an integer beyond 64 bits. Of such a text the
-- surrogate becomes U+FFFD and the integer a double, which is what filters and series of query-api take them for. Digits inside of
-- strings stay: the expression passes over whole strings.
-- ClickHouse writes the expression into each view, so that no account needs a right to the function.
CREATE OR REPLACE FUNCTION sluice_sql_readable AS json -> if(
  isValidJSON(json),
  json,
  replaceRegexpAll(
    replaceRegexpAll(replaceAll(json, '\\\\', '\\u005c'), '\\\\ud[89a-f][0-9a-f]{2}', '\\\\ufffd'),
    '((?:"(?:[^"\\\\]|\\\\.)*"|[^"])*?[:,\\[])(-[0-9]{19,}|[0-9]{20,})',
    '\\1\\2.0'
  )
);

CREATE OR REPLACE VIEW sluice_sql.events (
  timestamp DateTime64(3, 'UTC') COMMENT 'When it happened; a condition on it makes a query cheap',
  received_at DateTime64(6, 'UTC') COMMENT 'When it was accepted',
  uuid UUID COMMENT 'Its identifier',
  event LowCardinality(String) COMMENT 'Its name',
  type LowCardinality(String) COMMENT 'track, page, screen, identify and others',
  user_id String COMMENT 'The user; empty where there is none',
  organization_id String COMMENT 'The organization; empty where there is none',
  anonymous_id String COMMENT 'The visitor who is not signed in; empty where there is none',
  instance_id String COMMENT 'The instance of the product; empty where there is none',
  properties String COMMENT 'JSON text; JSONExtractString(properties, ''plan'') reads a property',
  context String COMMENT 'JSON text about the device, page and campaign',
  traits String COMMENT 'JSON text of what is known of the user'
)
DEFINER = sluice_sql_owner SQL SECURITY DEFINER AS
SELECT
  timestamp,
  received_at,
  uuid,
  event,
  type,
  user_id,
  group_id AS organization_id,
  anonymous_id,
  instance_id,
  sluice_sql_readable(properties) AS properties,
  sluice_sql_readable(context) AS context,
  sluice_sql_readable(traits) AS traits
FROM sluice.events
COMMENT 'What happened, each event once';

-- A row of `entities` begins after the deletion in `other_id`. Where a later one waits for its erasure, the times may be from before:
-- the last change stands in for them until the erasure has put that right. The deletions are scalars: in a JOIN, ClickHouse
-- would evaluate the conditions of a statement on the identifiers of deleted users as well.
CREATE OR REPLACE VIEW sluice_sql.users (
  user_id String COMMENT 'The user',
  properties String COMMENT 'JSON text of the present properties; JSONExtractString(properties, ''plan'') reads one',
  first_seen_at DateTime64(3, 'UTC') COMMENT 'When the user was first seen',
  last_seen_at DateTime64(3, 'UTC') COMMENT 'When the user was last seen'
)
DEFINER = sluice_sql_owner SQL SECURITY DEFINER AS
SELECT
  id AS user_id,
  sluice_sql_readable(concat('{', members, '}')) AS properties,
  first_seen_at,
  last_seen_at
FROM (
  SELECT
    id,
    min(if(begins_after_deletion, first_seen_at, changed_at)) AS first_seen_at,
    max(if(begins_after_deletion, last_seen_at, changed_at)) AS last_seen_at
  FROM (
    SELECT
      id,
      first_seen_at,
      last_seen_at,
      toDateTime64(fromUnixTimestamp64Micro(toInt64(version), 'UTC'), 3, 'UTC') AS changed_at,
      toUInt64OrZero(other_id) >= transform(
        id,
        (SELECT groupArray(user_id) FROM (
          SELECT user_id FROM sluice.pending_deletions GROUP BY user_id ORDER BY user_id)),
        (SELECT groupArray(version) FROM (
          SELECT max(version) AS version FROM sluice.pending_deletions GROUP BY user_id ORDER BY user_id)),
        toUInt64(0)
      ) AS begins_after_deletion
    FROM sluice.entities
    WHERE kind = 'user'
  )
  GROUP BY id
) AS seen
LEFT JOIN (
  SELECT
    id,
    arrayStringConcat(arrayMap(
      member -> concat(toJSONString(member.1), ':', member.2),
      arraySort(groupArray((property, tupleElement(winner, 'value'))))
    ), ',') AS members
  FROM (
    SELECT
      id,
      property,
      -- packages/shared/src/clickhouse/property-versions.ts explains it. What is before a deletion is erased, or the row
      -- policy leaves it out.
      tupleElement(max((if(once_week > 1, 65535 - once_week, 65536), register)), 2) AS winner
    FROM sluice.entity_properties
    WHERE kind = 'user' AND (once_week = 0 OR (once_week = 1) != (id IN (
      SELECT id FROM sluice.entities WHERE kind = 'user' AND other_id != ''
      UNION ALL
      SELECT user_id FROM sluice.pending_deletions)))
    GROUP BY id, property
  )
  WHERE tupleElement(winner, 'operation') = 'set'
  GROUP BY id
) AS current USING (id)
COMMENT 'The users as they are now';

CREATE OR REPLACE VIEW sluice_sql.organizations (
  organization_id String COMMENT 'The organization',
  properties String COMMENT 'JSON text of the present properties; JSONExtractString(properties, ''plan'') reads one',
  first_seen_at DateTime64(3, 'UTC') COMMENT 'When the organization was first seen',
  last_seen_at DateTime64(3, 'UTC') COMMENT 'When the organization was last seen'
)
DEFINER = sluice_sql_owner SQL SECURITY DEFINER AS
SELECT
  id AS organization_id,
  sluice_sql_readable(concat('{', members, '}')) AS properties,
  first_seen_at,
  last_seen_at
FROM (
  SELECT id, min(first_seen_at) AS first_seen_at, max(last_seen_at) AS last_seen_at
  FROM sluice.entities
  WHERE kind = 'organization'
  GROUP BY id
) AS seen
LEFT JOIN (
  SELECT
    id,
    arrayStringConcat(arrayMap(
      member -> concat(toJSONString(member.1), ':', member.2),
      arraySort(groupArray((property, tupleElement(winner, 'value'))))
    ), ',') AS members
  FROM (
    SELECT id, property, max(register) AS winner
    FROM sluice.entity_properties
    WHERE kind = 'organization'
    GROUP BY id, property
  )
  WHERE tupleElement(winner, 'operation') = 'set'
  GROUP BY id
) AS current USING (id)
COMMENT 'The organizations as they are now';

-- packages/shared/src/clickhouse/identities.ts says whose a visitor is: of its facts the one that comes first here decides. A fact whose
-- visitor begins with the UTF-8 of U+FFFF is about a user.
CREATE OR REPLACE VIEW sluice_sql.identities (
  anonymous_id String COMMENT 'The visitor who is not signed in',
  user_id String COMMENT 'The user that the visitor turned out to be',
  linked_at DateTime64(3, 'UTC') COMMENT 'When that was accepted which decides it',
  linked_by LowCardinality(String) COMMENT 'event: what first named both; request: somebody said so'
)
DEFINER = sluice_sql_owner SQL SECURITY DEFINER AS
SELECT
  anonymous_id,
  user_id,
  toDateTime64(fromUnixTimestamp64Micro(toInt64(version), 'UTC'), 3, 'UTC') AS linked_at,
  if(said = 1, 'request', 'event') AS linked_by
FROM (
  SELECT anonymous_id, user_id, version, said
  FROM sluice.identity_links
  WHERE NOT startsWith(anonymous_id, '\xEF\xBF\xBF')
  ORDER BY
    anonymous_id, said DESC, if(said = 1, -toInt64(version), toInt64(version)), if(said = 1, user_id, '') DESC, user_id
  LIMIT 1 BY anonymous_id
)
WHERE user_id != ''
COMMENT 'Whose anonymous visitors are';
