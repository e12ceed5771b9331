import { test } from 'vitest';
import { expectSameStatements, seed } from './same-statements.ts';

const OPERATIONS = 1_000;

test(`as statements.test.ts, for many more operations (SLUICE_SEED=${seed})`, async () => {
  await expectSameStatements(OPERATIONS);
});
