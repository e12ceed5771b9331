import { type DiagLogFunction, DiagLogLevel, diag } from '@opentelemetry/api';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { createLogger } from '../base/log.ts';

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

/** While a collector is away, each export fails. One failure is logged in this time, in milliseconds. */
const LOG_INTERVAL_MS = 60_000;

/** Logs as the services do. */
function logProblems(service: string): void {
  const logger = createLogger(service, 'warn');
  let failedAt = Number.NEGATIVE_INFINITY;
  const warn: DiagLogFunction = (reason) => logger.warn({ reason }, 'a problem with the export of spans');
  const error: DiagLogFunction = (text) => {
    if (performance.now() - failedAt < LOG_INTERVAL_MS) return;
    failedAt = performance.now();
    logger.warn({ reason: messageIn(text) }, 'spans cannot be exported');
  };
  const nothing = () => undefined;
  diag.setLogger(
    { error, warn, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}

/** The SDK describes an error as JSON, with the body of a response, which may quote the headers of the request. */
function messageIn(text: string): string {
  const { message } = text.startsWith('{') ? (JSON.parse(text) as { readonly message?: string }) : { message: text };
  return message ?? 'no reason given';
}
