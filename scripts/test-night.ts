// npm run test:night: the tests that are large, long or old. `-- --help` tells more.
import { runTests } from './checks/run-tests.ts';

await runTests('night');
