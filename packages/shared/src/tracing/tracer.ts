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
