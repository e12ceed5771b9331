import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { createLogger } from '../log.ts';

/**
 * Starts OpenTelemetry's SDK, which gathers spans and exports them by OTLP. The environment configures it, with
 * OpenTelemetry's own variables; metrics and logs are not exported.
 *
 * @param service the default of `OTEL_SERVICE_NAME` is `sluice-` and this
 */
export function startSdk(service: string): void {
  const serviceName = `sluice-${service}`;
  const resource = defaultResource().merge(resourceFromAttributes({ 'service.name': serviceName }));
  const sdk = new NodeSDK({ resource, metricReaders: [], logRecordProcessors: [] });
  logProblems(service);
  sdk.start();
}

/** Logs as the services do. */
function logProblems(service: string): void {
  const logger = createLogger(service, 'warn');
  const warn: DiagLogFunction = (reason) => logger.warn({ reason }, 'tracing');
  const nothing = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
