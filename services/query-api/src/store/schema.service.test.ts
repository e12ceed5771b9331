import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startQuery } from '../testing/query-service.ts';

test('it is not ready over a database that a newer version has changed so that this one cannot use it', async () => {
  const query = await startQuery(inject('clickhouseUrl'), {}, (reader) => reader, createDatabase);
  onTestFinished(() => query.stop());
  const newer = (name: string) => query.insert('schema_migrations', [{ number: 9_999, name, checksum: 'x' }]);
  await newer('9999-added.sql');
  expect((await query.app.inject('/readyz')).statusCode).toBe(200);
  await query.clickHouse.command({
    query: 'ALTER TABLE schema_migrations DELETE WHERE number = 9999 SETTINGS mutations_sync = 1',
  });
  await newer('9999-renamed-no-downgrade.sql');
  await eventually(async () => (await query.app.inject('/readyz')).json()).toMatchObject({
    missing: ['the tables are those of a newer version'],
  });
});
