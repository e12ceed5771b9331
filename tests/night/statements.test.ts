import { test } from 'vitest';
import { expectSameStatements } from '../simulation/contracts/same-statements.ts';

const OPERATIONS = 250;

test('the simulated statements answer and store what the .sql files of the writer do, over many operations', async () => {
  await expectSameStatements(OPERATIONS);
});
