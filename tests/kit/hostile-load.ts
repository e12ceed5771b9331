// A worker thread that submits one hostile body after the other, as the workspace `hostile`, until it is terminated. It
// replies to each message with the number of responses so far, by their status.
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { hostileBodies } from './hostile-bodies.ts';

export interface HostileLoad {
  readonly url: string;
  readonly connections: number;
}

const { url, connections } = workerData as HostileLoad;
const bodies = hostileBodies();
const statuses = new Map<number, number>();
let next = 0;
parentPort?.on('message', () => parentPort?.postMessage(statuses));

async function submit(): Promise<number> {
  const { body, headers } = bodies[next++ % bodies.length] ?? {};
  const response = await fetch(`${url}/v1/public/userGroups`, {
    method: 'POST',
    headers: { authorization: 'Bearer hostile', 'content-type': 'application/json', ...headers },
    body: new Uint8Array(body ?? []),
  });
  await response.arrayBuffer();
  return response.status;
}

await Promise.all(
  Array.from({ length: connections }, async () => {
    for (;;) {
      // 0 when the connection was cut.
      const status = await submit().catch(() => 0);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 503) await delay(100);
    }
  }),
);
