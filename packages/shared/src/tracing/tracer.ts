import { ProxyTracerProvider, type TracerProvider, trace } from '@opentelemetry/api';

/**
 * Creates the spans of all services. Without the SDK, which `register.mjs` starts, its spans are empty and cost next to
 * nothing.
 */
export const tracer = trace.getTracer('sluice');

/** What a provider of the SDK has, and the API does not know. */
interface Sdk {
  shutdown(): Promise<void>;
}

/** Returns the SDK; `undefined` while nothing is traced. */
export function tracingSdk(): Sdk | undefined {
  const global = trace.getTracerProvider();
  const provider: Partial<Sdk> & TracerProvider = global instanceof ProxyTracerProvider ? global.getDelegate() : global;
  return provider.shutdown ? (provider as Sdk) : undefined;
}

/**
 * The names of attributes, as the semantic conventions 1.45 of OpenTelemetry have them. Their package would take a
 * service longer to load than the rest of what traces it; a test compares the names with it.
 */
export const ATTRIBUTE = {
  databaseNamespace: 'db.namespace',
  databaseStatus: 'db.response.status_code',
  databaseSystem: 'db.system.name',
  destination: 'messaging.destination.name',
  errorType: 'error.type',
  group: 'messaging.consumer.group.name',
  messageCount: 'messaging.batch.message_count',
  messagingSystem: 'messaging.system.name',
  method: 'http.request.method',
  offset: 'kafka.offset',
  operation: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  partition: 'messaging.destination.partition.id',
  querySummary: 'db.query.summary',
  requestId: 'http.response.header.x-request-id',
  route: 'http.route',
  scheme: 'url.scheme',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  status: 'http.response.status_code',
} as const;

/** The id of a statement in ClickHouse's query log, by the name that @clickhouse/client gives it. */
export const QUERY_ID = 'clickhouse.request.query_id';
