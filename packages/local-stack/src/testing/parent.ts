// The parent process of orphan.ts: starts what its first argument names, prints the process ids as JSON and waits.
import { join } from 'node:path';
import { startClickHouse } from '../clickhouse.ts';
import { startEngineProcess } from '../engine-process.ts';
import { startKafka } from '../kafka.ts';
import { guardCommand } from '../process-guard.ts';

const [what, dataDir = ''] = process.argv.slice(2);

async function start(): Promise<(number | undefined)[]> {
  if (what === 'kafka') return [...(await startKafka({ dataDir })).pids];
  if (what === 'clickhouse') return [(await startClickHouse({ dataDir })).pid];
  const sleeper = await startEngineProcess({
    name: 'sleep',
    ...guardCommand('sleep', ['600']),
    cwd: dataDir,
    logFile: join(dataDir, 'sleep.log'),
    probe: async () => {},
    readyTimeoutMs: 1000,
    stopTimeoutMs: 1000,
  });
  return [sleeper.pid];
}

console.log(JSON.stringify(await start()));
