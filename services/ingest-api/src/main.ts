import cluster from 'node:cluster';
import { loadConfigOrExit } from '@sluice/shared/config';
import { createLogger } from '@sluice/shared/log';
import { Registry } from 'prom-client';
import { configSchema } from './config.ts';
import { serve } from './serve.ts';
import { runWorkers } from './workers/primary.ts';
import { readyTogether } from './workers/ready-together.ts';
import { WorkerRegistry } from './workers/worker-registry.ts';

const config = loadConfigOrExit(configSchema, process.env);
const logger = createLogger('ingest-api', config.LOG_LEVEL);
if (cluster.worker) {
  serve(config, logger.child({ worker: cluster.worker.id }), new WorkerRegistry(), readyTogether);
} else if (config.INGEST_WORKERS > 1) runWorkers(config, logger);
else serve(config, logger, new Registry());
