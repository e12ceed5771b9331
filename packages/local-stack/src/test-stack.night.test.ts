import { expect, test } from 'vitest';
import { isPortFree } from './ports.ts';
import { parseTestStackKind, startTestStack } from './test-stack.ts';

test('SLUICE_TEST_STACK chooses the stack, and any other value is refused', () => {
  expect(parseTestStackKind(undefined)).toBeUndefined();
  expect(parseTestStackKind('')).toBeUndefined();
  expect(parseTestStackKind('local')).toBe('local');
  expect(parseTestStackKind('containers')).toBe('containers');
  expect(() => parseTestStackKind('docker')).toThrow('"docker"');
});

test('after a stop, the ports of a stack are free', async () => {
  const stack = await startTestStack({ kind: 'local' });
  const ports = [stack.clickhouseUrl, `http://${stack.kafkaBrokers[0]}`].map((url) => Number(new URL(url).port));
  expect(await Promise.all(ports.map((port) => isPortFree(port)))).toEqual([false, false]);
  await stack.stop();
  expect(await Promise.all(ports.map((port) => isPortFree(port)))).toEqual([true, true]);
});
