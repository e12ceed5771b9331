import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, expect, test, vi } from 'vitest';
import { type FakeDocker, startFakeDocker } from './testing/fake-docker.ts';

const RUN = new URL('./testing/container-run.ts', import.meta.url).pathname;

interface Outcome {
  readonly kind?: string;
  readonly error?: string;
  readonly lines: readonly string[];
}

async function startStack(docker: FakeDocker, kind: 'containers' | '', brokers = 1): Promise<Outcome> {
  vi.stubEnv('DOCKER_HOST', docker.url);
  vi.stubEnv('TESTCONTAINERS_RYUK_DISABLED', 'true');
  const args = ['--disable-warning=ExperimentalWarning', RUN, kind, String(brokers)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

afterEach(() => vi.unstubAllEnvs());

test('when one container does not start, all are removed', async () => {
  await using docker = await startFakeDocker({ hasImages: true });
  const { error } = await startStack(docker, 'containers', 3);
  expect(error).toContain('port is already allocated');
  expect(docker.created).toHaveLength(4);
  expect(docker.left()).toEqual([]);
});

test('brokers advertise the host of DOCKER_HOST', async () => {
  await using docker = await startFakeDocker({ host: '127.0.0.2', hasImages: true });
  await startStack(docker, 'containers');
  const variables = docker.created.flatMap(({ Env }) => Env ?? []);
  expect(variables).toContainEqual(
    expect.stringMatching(/^KAFKA_ADVERTISED_LISTENERS=CLIENT:\/\/127\.0\.0\.2:\d+,INTERNAL:\/\/kafka-1:19092$/),
  );
});

test('a runtime without images is told in one line, and local engines are used', async () => {
  await using docker = await startFakeDocker({ hasImages: false });
  const { kind, lines } = await startStack(docker, '');
  expect(kind).toBe('local');
  // The first local engines of a machine are downloaded, which has lines of its own.
  const told = lines.filter((line) => !line.includes('Kafka'));
  expect(told).toEqual([expect.stringMatching(/do not start \(.*No such image.*\)\. .*SLUICE_TEST_STACK=local/)]);
});

test('a runtime without images is an error when containers were asked for', async () => {
  await using docker = await startFakeDocker({ hasImages: false });
  const { error } = await startStack(docker, 'containers');
  expect(error).toMatch(/SLUICE_TEST_STACK.*No such image/);
});
