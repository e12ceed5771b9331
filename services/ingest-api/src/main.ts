import cluster from 'node:cluster';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfigOrExit } from '@sluice/shared/config';
import { withProcessMetrics } from '@sluice/shared/service/process-metrics';
import { Registry } from 'prom-client';
import { configSchema } from './config.ts';
import { serve } from './serve.ts';
import { runWorkers } from './workers/primary.ts';
import { readyTogether, stopWithPrimary, WorkerRegistry } from './workers/worker.ts';

const config = loadConfigOrExit(configSchema, process.env);
const logger = createLogger('ingest-api', config.LOG_LEVEL);
if (cluster.worker) {
  const own = logger.child({ worker: cluster.worker.id });
  const registry = withProcessMetrics(new WorkerRegistry());
  stopWithPrimary(serve(config, { logger: own, registry, together: readyTogether }));
} else if (config.INGEST_WORKERS > 1) runWorkers(config, logger);
else serve(config, { logger, registry: withProcessMetrics(new Registry()) });
