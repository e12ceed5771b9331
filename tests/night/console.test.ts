import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe } from 'vitest';
import { lookInEachWay } from '../kit/clients/console-page.ts';

// All tests of the console again. These look at each page at each width, and in the colors of either scheme.

lookInEachWay();

describe.each(globSync(join(import.meta.dirname, '../clients/console*.test.ts')).toSorted())('%s', async (file) => {
  await import(file);
});
