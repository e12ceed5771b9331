import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { until } from '@sluice/shared/testing/until';
import { afterEach, expect, inject, test } from 'vitest';
import { startIngestAlone } from '../kit/ingest-alone.ts';
import { readMetric } from '../kit/metrics.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { Service } from '../kit/service.ts';

let pipeline: Pipeline | undefined;

afterEach(async () => {
  await pipeline?.stop();
  pipeline = undefined;
});

async function start(name: string): Promise<Pipeline> {
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name,
    env: { INGEST_WORKERS: '2', LOG_LEVEL: 'debug' },
  });
  return pipeline;
}

interface LogLine {
  readonly pid: number;
  readonly worker?: number;
  readonly msg: string;
}

function workerLines(service: Service): LogLine[] {
  // The last one may not be complete.
  const lines = service.log().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as LogLine).filter(({ worker }) => worker !== undefined);
}

function workerPids(service: Service): number[] {
  return [...new Set(workerLines(service).map(({ pid }) => pid))];
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('two workers share the port, every event is stored once, and the metrics are those of both', async () => {
  const running = await start('workers');
  const service = running.services['ingest-api'];
  const servedBy = () =>
    new Set(
      workerLines(service)
        .filter(({ msg }) => msg === 'response sent')
        .map(({ worker }) => worker),
    );
  let sent = 0;
  await until('both workers to serve', async () => {
    const body = { foreignUserGroupId: 'g', events: [{ event: 'a' }, { event: 'b' }] };
    const responses = await Promise.all(Array.from({ length: 8 }, () => running.submit(body)));
    expect(responses.map(({ status }) => status)).toEqual(Array(8).fill(202));
    sent += 16;
    return servedBy().size === 2;
  });
  await running.settled(sent);
  expect(await readMetric(service, 'sluice_ingest_accepted_events_total')).toBe(sent);
  // There is one of what both have in common.
  expect(await readMetric(service, 'sluice_keys_file_valid')).toBe(1);
  expect(await readMetric(service, 'sluice_ingest_clock_ahead_limit_seconds')).toBe(2);
  const pids = workerPids(service);
  expect(pids).toHaveLength(2);
  expect(await service.stop()).toBe(0);
  expect(pids.filter(isRunning)).toEqual([]);
});

test('when a worker is killed the service ends with an error, and when the primary is killed no worker outlives it', async () => {
  const { services, restart } = await start('workersKilled');
  const started = () => workerPids(services['ingest-api']);
  await until('both workers to start', async () => started().length === 2);
  const [first = 0, second = 0] = started();
  process.kill(first, 'SIGKILL');
  expect(await services['ingest-api'].endsItself()).toBe(1);
  expect(isRunning(second)).toBe(false);
  await restart('ingest-api');
  await until('both workers to start', async () => started().length === 2);
  const pids = started();
  await services['ingest-api'].kill9();
  await until('the workers to end', async () => !pids.some(isRunning));
});

test('a signal to every process of the service, as a process group gets it, cuts no request', async () => {
  const kafkaBrokers = inject('kafkaBrokers');
  const env = { INGEST_WORKERS: '2' };
  await using ingest = await startIngestAlone({ kafkaBrokers, name: 'workersSignalled', env });
  const { service } = ingest;
  await until('both workers to start', async () => workerPids(service).length === 2);
  const requests = Array.from({ length: 6 }, () => {
    const headers = { authorization: 'Bearer test', 'content-type': 'application/json' };
    const sent = request(`${service.url}/v1/public/userGroups`, { method: 'POST', headers, agent: false });
    sent.write('{"foreignUserGroupId":');
    return { sent, status: once(sent, 'response').then(([response]) => (response as IncomingMessage).statusCode) };
  });
  const begunBytes = requests.length * 16 * 1_024;
  await until('the requests to begin', async () => {
    return (await readMetric(service, 'sluice_ingest_reserved_bytes')) >= begunBytes;
  });
  const pids = [...workerPids(service), service.pid];
  expect(pids).toHaveLength(3);
  for (const pid of pids) process.kill(pid, 'SIGTERM');
  const count = (message: string) => service.log().split(`"msg":"${message}"`).length - 1;
  await until('all processes to be told', async () => count('stopping') === pids.length);
  for (const { sent } of requests) sent.end('"g","events":[{"event":"e"}]}');
  expect(await Promise.all(requests.map(({ status }) => status))).toEqual(requests.map(() => 202));
  expect(await service.exited()).toBe(0);
  expect(count('told to stop again: exiting at once')).toBe(0);
});
