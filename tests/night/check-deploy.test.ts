import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('the chart is right with each file of values and each pair of switches, and planted faults are found', async () => {
  const script = join(import.meta.dirname, '..', '..', 'scripts', 'check-deploy.ts');
  const { code, output } = await new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(process.execPath, [script], (error, stdout, stderr) => {
      resolve({ code: error ? error.code : 0, output: `${stdout}${stderr}` });
    });
  });
  expect(output).not.toMatch(/^(FAILED|NOT FOUND)/m);
  expect(code, output).toBe(0);
});
