import { readMigrations } from '@sluice/shared/clickhouse/migrate';
import { createdTable } from '@sluice/shared/clickhouse/migration-waves';
import { expect, test } from 'vitest';
import { PARTS, tablesOf } from './parts.ts';

test('every table is in one part of a backup', async () => {
  const migrations = await readMigrations();
  const created = migrations.map(createdTable).filter((table) => table !== undefined);
  const inParts = PARTS.flatMap((part) => tablesOf(part, migrations));
  expect(inParts.toSorted()).toEqual(['schema_migrations', ...created].sort());
});
