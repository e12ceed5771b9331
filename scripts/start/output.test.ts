import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { createOutput } from './output.ts';
import type { ShownLogs } from './settings.ts';

const INFO = '{"level":"info","time":1,"name":"writer","msg":"ready"}';
const WARNING = '{"level":"warn","time":1,"name":"writer","msg":"slow"}';
const PLAIN = 'Error: a stack trace of Node.js';

/** What is shown of three lines of a writer, and what is in its file. */
async function show(logDir: string, logs: ShownLogs): Promise<{ shown: string[]; kept: () => Promise<string> }> {
  const stream = new PassThrough({ encoding: 'utf8' });
  const output = createOutput(stream, { isTerminal: false, logDir, logs });
  output.say('Starting');
  for (const line of [INFO, WARNING, PLAIN]) output.serviceLine('writer', line);
  const shown = String(stream.read()).trim().split('\n');
  return { shown, kept: () => readFile(join(logDir, 'writer.log'), 'utf8').catch(() => '') };
}

test('lines of services go to a file, and warnings, errors and plain text are shown as well', async () => {
  await using dir = await makeTempDir();
  const { shown, kept } = await show(join(dir.path, 'logs'), 'files');
  expect(shown).toEqual(['Starting', expect.stringMatching(/^writer \[.*\] WARN: slow$/), `writer ${PLAIN}`]);
  await eventually(kept).toBe([INFO, WARNING, PLAIN, ''].join('\n'));
});

test('LOG=json shows all lines as they are, LOG=text all for people', async () => {
  await using dir = await makeTempDir();
  expect((await show(join(dir.path, 'json'), 'json')).shown).toEqual(['Starting', INFO, WARNING, PLAIN]);
  const { shown } = await show(join(dir.path, 'text'), 'text');
  expect(shown[1]).toMatch(/^writer \[.*\] INFO: ready$/);
  expect(shown).toHaveLength(4);
});
