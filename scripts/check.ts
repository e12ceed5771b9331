// npm run check: types, lint and format.
import { join } from 'node:path';
import { runChecks } from './checks/checks.ts';

const { failed } = await runChecks(join(import.meta.dirname, '..'));
process.exitCode = failed > 0 ? 1 : 0;
