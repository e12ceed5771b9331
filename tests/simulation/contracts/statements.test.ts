import { test } from 'vitest';
import { expectSameStatements } from './same-statements.ts';

const OPERATIONS = 40;

test('the simulated statements answer and store what the .sql files of the writer do', async () => {
  await expectSameStatements(OPERATIONS);
});
