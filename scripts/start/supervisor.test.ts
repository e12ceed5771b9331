import { join } from 'node:path';
import { findFreePorts } from '@sluice/local-stack/ports';
import { isAlive } from '@sluice/local-stack/testing/orphan';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, onTestFinished, test } from 'vitest';
import { type ServiceSpec, serviceProcess } from './service-process.ts';
import { createSupervisor, type ProcessSpec, type Supervisor, type SupervisorOptions } from './supervisor.ts';

interface Watched {
  readonly supervisor: Supervisor;
  readonly events: string[];
  /** Process ids in the order in which the processes became ready. */
  readonly pids: Map<string, number[]>;
}

/** Supervises services made of testing/service.ts and records what happens. */
async function watch(
  stages: readonly (readonly string[])[],
  env: Readonly<Record<string, string>> = {},
  more: Partial<SupervisorOptions> = {},
  baseEnv: Readonly<Record<string, string>> = {},
): Promise<Watched> {
  const events: string[] = [];
  const pids = new Map<string, number[]>();
  const ports = await findFreePorts(stages.flat().length);
  const mainFile = join(import.meta.dirname, 'testing', 'service.ts');
  const report = (line: string) => void events.push(line);
  const toSpec = (name: string): ProcessSpec => {
    const ownEnv = name === 'broken' ? { FAIL: 'true' } : env;
    const spec: ServiceSpec = { name, mainFile, port: ports[stages.flat().indexOf(name)] ?? 0, env: ownEnv };
    const service = serviceProcess(spec, { baseEnv, report, onLine: (from, line) => report(`${from}: ${line}`) });
    const start = async (signal: AbortSignal) => {
      const running = await service.start(signal);
      pids.set(name, [...(pids.get(name) ?? []), running.pid]);
      return running;
    };
    return { name, start };
  };
  const supervisor = createSupervisor({
    stages: stages.map((stage) => stage.map(toSpec)),
    report,
    restartDelayMsMin: 20,
    ...more,
  });
  onTestFinished(() => supervisor.stop());
  return { supervisor, events, pids };
}

test('stages start in order, when the one before is ready, and stop in reverse', async () => {
  const { supervisor, events } = await watch([['engine'], ['service']]);
  await supervisor.start();
  await supervisor.stop();
  const own = events.filter((event) => !event.includes(':'));
  expect(own.map((event) => event.replace(/\d+\.\d/, 'N'))).toEqual([
    'engine is ready (N s)',
    'service is ready (N s)',
  ]);
  expect(events.filter((event) => !own.includes(event))).toEqual([
    'engine: listening',
    'engine: ready',
    'service: listening',
    'service: ready',
    'service: stopped by SIGTERM',
    'engine: stopped by SIGTERM',
  ]);
});

test('a process that ends is started again, a line says so, and the others keep running', async () => {
  const { supervisor, events, pids } = await watch([['one', 'other']]);
  await supervisor.start();
  process.kill(pids.get('one')?.[0] ?? 0, 'SIGKILL');
  await eventually(() => pids.get('one')?.length).toBe(2);
  await eventually(() => events).toContainEqual(expect.stringMatching(/^one is ready again/));
  expect(events).toContain('one was ended by SIGKILL; starting it again in 0.02 s');
  expect(pids.get('other')).toHaveLength(1);
  expect(isAlive(pids.get('other')?.[0] ?? 0)).toBe(true);
});

test('the delay before a restart grows', async () => {
  const { supervisor, events, pids } = await watch([['one']]);
  await supervisor.start();
  for (const lives of [1, 2]) {
    await eventually(() => pids.get('one')?.length).toBe(lives);
    process.kill(pids.get('one')?.at(-1) ?? 0, 'SIGKILL');
  }
  await eventually(() => pids.get('one')?.length).toBe(3);
  expect(events.filter((line) => line.includes('starting it again')).map((line) => line.split('again in ')[1])).toEqual(
    ['0.02 s', '0.04 s'],
  );
});

test('when a process never starts, everything is stopped again and the failure says which', async () => {
  const { supervisor, pids } = await watch([['engine'], ['broken']], {}, { firstStartAttemptsMax: 2 });
  await expect(supervisor.start()).rejects.toThrow('broken did not start: it ended with exit code 7');
  expect(isAlive(pids.get('engine')?.[0] ?? 0)).toBe(false);
});

test('stopping while something is still starting ends it', async () => {
  const { supervisor, events } = await watch([['slow']], { NEVER_READY: 'true' });
  const starting = supervisor.start();
  await eventually(() => events).toContain('slow: listening');
  await supervisor.stop();
  await starting;
  expect(events.at(-1)).toBe('slow: stopped by SIGTERM');
});

test.each([
  ['', 'localhost'],
  ['sluice.internal', 'sluice.internal'],
])(
  'services are reached by names of this machine alone, unless ALLOWED_HOSTS names others: "%s"',
  async (given, names) => {
    const { supervisor, events } = await watch([['one']], { SHOW: 'ALLOWED_HOSTS' }, {}, { ALLOWED_HOSTS: given });
    await supervisor.start();
    expect(events[0]).toBe(`one: ${names}`);
  },
);

test('killNow ends everything without waiting', async () => {
  const { supervisor, pids } = await watch([['one', 'other']]);
  await supervisor.start();
  supervisor.killNow();
  for (const [pid = 0] of pids.values()) await eventually(() => isAlive(pid)).toBe(false);
});
