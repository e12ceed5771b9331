import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { createLogger } from './log.ts';

const SCRIPT = `
import { createLogger } from './log.ts';
const logger = createLogger('test', 'info');
process.stdin.once('data', () => {
  logger.info('going on');
  logger.fatal('cannot go on');
  process.exit(1);
});
process.stderr.write('ready');
`;

test('a process that cannot go on ends, also when nobody reads its log any more', async () => {
  const args = ['--input-type=module', '--eval', SCRIPT];
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: 'pipe' });
  await once(child.stderr, 'data');
  const closed = once(child.stdout, 'close');
  child.stdout.destroy();
  await closed;
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  child.stdin.end('go on');
  const [, signal] = await once(child, 'exit');
  clearTimeout(timer);
  expect(signal).toBeNull();
});

test('a line has the name of its level, and no credentials', () => {
  const lines: string[] = [];
  const logger = createLogger('test', 'debug', { write: (line) => void lines.push(line) });
  logger.debug('quiet');
  logger.warn({ password: 'secret', req: { headers: { authorization: 'Bearer secret' } } }, 'loud');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'debug', name: 'test', msg: 'quiet' },
    { level: 'warn', name: 'test', msg: 'loud' },
  ]);
  expect(lines.join('')).not.toContain('secret');
});
