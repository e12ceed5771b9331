// A ClickHouse server as a process: `clickhouse local` of the chDB library, with its real HTTP and TCP interfaces.
// Usage: node clickhouse-host.ts <run folder> <data folder> <backup folder> [host:port for other replicas]; the run folder holds config.xml, users.xml and start.sql
// and is removed once the server listens. Where the system can limit that, the server reads files of these folders only. The process
// ends on SIGTERM and when standard input ends, that is with its parent.
import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type ClickHouseLocal, exitNow } from './clickhouse-library.ts';

const STOP_TIMEOUT_MS = 10_000;

const [runDir, dataDir, backupDir, interserver] = process.argv.slice(2);
if (!runDir || !dataDir || !backupDir)
  throw new Error('usage: clickhouse-host.ts <run folder> <data folder> <backup folder>');
await mkdir(backupDir, { recursive: true });

// The server runs start.sql and then reads statements from this pipe: it runs as long as the pipe is open.
const holdPipe = join(runDir, 'hold.fifo');
execFileSync('mkfifo', ['-m', '600', holdPipe]);

const replicas = interserver === undefined ? undefined : new URL(`http://${interserver}`);
const local: ClickHouseLocal = {
  args: [
    'clickhouse',
    ...['--config-file', join(runDir, 'config.xml')],
    ...['--path', dataDir],
    ...(replicas ? [] : ['--listen_host', '127.0.0.1']),
    // `clickhouse local` ignores the level in the configuration file.
    ...['--log-level', 'information'],
    ...['--queries-file', join(runDir, 'start.sql'), holdPipe],
  ],
  folders: [runDir, dataDir, backupDir],
  interserver: replicas && { host: replicas.hostname, port: Number(replicas.port) },
};
const worker = new Worker(new URL('./clickhouse-worker.ts', import.meta.url), { workerData: local });
worker.on('error', (error) => {
  console.error(error);
  exitNow(1);
});

let pipe: FileHandle | undefined;
let stopping = false;

async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  // The worker is inside the library until the server ends, so this thread watches the deadline.
  setTimeout(() => {
    console.error(`the server did not stop in ${STOP_TIMEOUT_MS} ms`);
    exitNow(1);
  }, STOP_TIMEOUT_MS);
  // Before the server has started there is none.
  await pipe?.close();
}

process.on('SIGTERM', stop);
process.on('SIGINT', stop);
process.stdin.on('end', stop).resume();

// Resolves when the server opens the other end, that is after start.sql.
pipe = await open(holdPipe, constants.O_WRONLY);
await rm(runDir, { recursive: true, force: true });
if (stopping) await pipe.close();
