// The thread that stays inside the library while the server runs. It ends the process itself: when the thread ended first,
// Node.js would unload the library while threads of it still run, which crashes (SIGSEGV).
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { exitNow, runClickHouseLocal } from './clickhouse-library.ts';

const error = runClickHouseLocal(workerData);
if (error !== undefined) writeSync(process.stderr.fd, `${error}\n`);
exitNow(error === undefined ? 0 : 1);
