import { join } from 'node:path';
import { findFreePorts } from '@sluice/local-stack/ports';
import { until } from '@sluice/shared/testing/until';
import { expect, onTestFinished, test, vi } from 'vitest';
import { serviceProcess } from './service-process.ts';

test('a start that takes long says every ten seconds what the service lacks, and ends when it is told to', async () => {
  // Of the clocks only the one that reports go by; the waits themselves are real.
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const [port = 0] = await findFreePorts(1);
  const lines: string[] = [];
  const reports: string[] = [];
  const stopping = new AbortController();
  const starting = serviceProcess(
    {
      ...{ name: 'writer', mainFile: join(import.meta.dirname, 'testing', 'service.ts'), port },
      env: { NEVER_READY: 'Kafka cannot be reached' },
    },
    { baseEnv: {}, onLine: (_, line) => void lines.push(line), report: (line) => void reports.push(line) },
  ).start(stopping.signal);
  const ended = expect(starting).rejects.toThrow('told to stop');
  const asked = () => lines.filter((line) => line === 'asked').length;
  const untilAskedAgain = async () => {
    const before = asked();
    await until('the service to be asked twice more', async () => asked() >= before + 2);
  };

  await untilAskedAgain();
  expect(reports).toEqual([]);
  vi.advanceTimersByTime(10_001);
  await untilAskedAgain();
  const said = 'still waiting for writer: Kafka cannot be reached';
  expect(reports).toEqual([said]);
  vi.advanceTimersByTime(9_999);
  await untilAskedAgain();
  expect(reports).toEqual([said]);
  vi.advanceTimersByTime(2);
  await untilAskedAgain();
  expect(reports).toEqual([said, said]);

  stopping.abort(new Error('told to stop'));
  await ended;
  expect(lines.at(-1)).toBe('stopped by SIGTERM');
});
