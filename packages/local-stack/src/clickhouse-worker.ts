// The thread that is inside the library for as long as the server runs.
import { parentPort, workerData } from 'node:worker_threads';
import { runClickHouseLocal } from './clickhouse-library.ts';

parentPort?.postMessage(runClickHouseLocal(workerData));
