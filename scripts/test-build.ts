// npm run test:build: the checks, npm test and what breaks things: what each change has to pass. `-- --help` tells more.
import { runTests } from './checks/run-tests.ts';

await runTests('build');
