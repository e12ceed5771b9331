import { test } from 'vitest';
import { expectSameStatements } from './same-statements.ts';

const OPERATIONS = 40;

test('the simulated statements answer and store what the .sql files of the writer do', async () => {
  await expectSameStatements(OPERATIONS);
});

test('so they do where the rows of a batch travel with each statement', async () => {
  await expectSameStatements(OPERATIONS, true);
});
