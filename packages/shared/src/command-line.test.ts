import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calledAs } from './command-line.ts';

test('help names the npm script in a checkout, and the file in a container, which has no npm', () => {
  expect(calledAs('keys', '/sluice/scripts/keys.ts')).toBe('npm run keys --');
  expect(calledAs('keys', join(process.cwd(), 'folder', 'main.ts'))).toBe('node folder/main.ts');
});
