// The thread that stays inside the library while the server runs.
import { parentPort, workerData } from 'node:worker_threads';
import { runClickHouseLocal } from './clickhouse-library.ts';

parentPort?.postMessage(runClickHouseLocal(workerData));
