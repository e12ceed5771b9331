import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'vitest';
import { lookInEachWay } from '../kit/clients/console-page.ts';

// All tests of the console again. These look at each page at each width, in the colors of either scheme, and in more states.

const FOLDER = join(import.meta.dirname, '..', 'clients');

lookInEachWay();

describe.each(globSync('console*.test.ts', { cwd: FOLDER }).toSorted())('%s', async (file) => {
  await import(join(FOLDER, file));
});
