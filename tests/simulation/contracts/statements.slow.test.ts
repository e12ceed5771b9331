import { test } from 'vitest';
import { expectSameStatements, seed } from './same-statements.ts';

const OPERATIONS = 1_000;

test(`the simulated statements answer and store what the .sql files of the writer do (SLUICE_SEED=${seed})`, async () => {
  await expectSameStatements(OPERATIONS);
});
