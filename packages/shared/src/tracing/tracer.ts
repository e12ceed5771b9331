import { trace } from '@opentelemetry/api';

/**
 * Creates the spans of all services. Without the SDK, which `register.mjs` starts, its spans are empty and cost next to
 * nothing.
 */
export const tracer = trace.getTracer('sluice');
