import { createLogger } from '@sluice/shared/base/log';
import { loadConfigOrExit } from '@sluice/shared/config';
import { listening } from '@sluice/shared/http/server';
import { runService } from '@sluice/shared/service/lifecycle';
import { withProcessMetrics } from '@sluice/shared/service/process-metrics';
import { Registry } from 'prom-client';
import { buildApp } from './app.ts';
import { configSchema } from './config.ts';

const config = loadConfigOrExit(configSchema, process.env);
const logger = createLogger('trench-api', config.LOG_LEVEL);
const app = buildApp(config, { logger, registry: withProcessMetrics(new Registry()), now: Date.now });

runService({
  logger,
  components: [listening(app, config.HOST, config.PORT)],
  shutdownTimeoutMs: config.SHUTDOWN_TIMEOUT_MS,
  exitOnStdinEnd: config.EXIT_ON_STDIN_END,
});
