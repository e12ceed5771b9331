-- Kafka counts generations from 1 again after it has lost a group, and may come to a generation that is recorded already.
-- The id of the member that led the generation tells the two apart. Empty: recorded by a version that did not know it.
ALTER TABLE writer_epochs
  ADD COLUMN IF NOT EXISTS leader_id String,
  MODIFY ORDER BY (group_id, incarnation, generation, leader_id)
