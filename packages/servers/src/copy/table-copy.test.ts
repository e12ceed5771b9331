import { readMigrations } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { expect, test } from 'vitest';
import { DELETIONS, NOT_COPIED, otherTables } from './table-copy.ts';

test('every table is copied, or is known to be of one server', async () => {
  const migrations = await readMigrations();
  const created = migrations.map(createdTable).filter((table) => table !== undefined);
  const known = ['events', ...DELETIONS, ...otherTables(migrations), ...NOT_COPIED];
  expect(known.toSorted()).toEqual(['schema_migrations', ...created].sort());
  expect(otherTables(migrations)).toEqual([
    ...['entities', 'entity_properties', 'user_sightings', 'dead_letters', 'topic_partitions', 'retention'],
    ...['given_up_messages', 'log_gaps', 'console_fast_properties', 'identity_links', 'identity_deletions'],
    'console_identity_settings',
  ]);
});
