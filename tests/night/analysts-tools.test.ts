import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { driversToRun, runAllDrivers, runDriver, startTools } from '../kit/clients/analysts-tools.ts';

const MANY = 1_000_000;

runAllDrivers();

describe('all drivers', async () => {
  await import('../clients/analysts-tools.test.ts');
});

test('the drivers of analysts read a million rows of a workspace, and one more is an error', async () => {
  const guide = await readFile(new URL('../../docs/guide/bi.md', import.meta.url), 'utf8');
  await using world = await startTools(MANY);
  for (const driver of driversToRun()) {
    const { statements } = await runDriver(driver, world, guide, [
      "SELECT user_id, timestamp, properties FROM events WHERE event = 'many'",
      'SELECT user_id, timestamp, properties FROM events',
    ]);
    expect(statements[0]?.rows, driver).toBe(MANY);
    // The rows before it have been sent: JDBC says that it cannot read on.
    expect(statements[1]?.error, driver).toBeDefined();
  }
});
