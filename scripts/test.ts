// npm test: the checks, and the tests that need no more than npm start does. `-- --help` tells more.
import { runTests } from './checks/run-tests.ts';

await runTests('test');
