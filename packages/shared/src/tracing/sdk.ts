import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { createLogger } from '../log.ts';

/**
 * Starts OpenTelemetry's SDK, which gathers spans and exports them by OTLP. The environment configures it, with
 * OpenTelemetry's own variables; metrics and logs are not exported.
 *
 * @param serviceName the default of `OTEL_SERVICE_NAME`
 */
export function startSdk(serviceName: string): void {
  const resource = defaultResource().merge(resourceFromAttributes({ 'service.name': serviceName }));
  const sdk = new NodeSDK({ resource, metricReaders: [], logRecordProcessors: [] });
  logProblems(serviceName);
  sdk.start();
}

/** Logs as the services do. */
function logProblems(serviceName: string): void {
  const logger = createLogger(serviceName, 'warn');
  const warn: DiagLogFunction = (reason) => logger.warn({ reason }, 'tracing');
  const nothing = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
