import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('a worker tells that it is ready, and is not ready for requests before all are', async () => {
  const worker = fork(fileURLToPath(new URL('../testing/worker-fixture.ts', import.meta.url)));
  try {
    const missing = async () => {
      const response = once(worker, 'message');
      worker.send('what is missing?');
      return (await response)[0];
    };
    expect(await missing()).toEqual({ missing: ['Kafka cannot be reached'] });
    const told = once(worker, 'message');
    worker.send('become ready');
    expect((await told)[0]).toEqual({ type: 'worker is ready' });
    expect(await missing()).toEqual({ missing: ['another worker is not ready yet'] });
    worker.send({ type: 'all workers are ready' });
    expect(await missing()).toEqual({ missing: [] });
  } finally {
    worker.kill();
  }
});
