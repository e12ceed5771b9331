import { reasonOf } from './check.ts';

/** Returns Kafka's name of an error, also of one that kafkajs has wrapped. */
export function typeOf(error: unknown): string {
  const { type, cause, errors = [] } = error as { type?: string; cause?: unknown; errors?: readonly unknown[] };
  if (type !== undefined) return type;
  const inner = cause ?? errors[0];
  return inner === undefined ? reasonOf(error) : typeOf(inner);
}

/** Returns the broker that an error of kafkajs is about, also of one that it has wrapped. */
export function brokerOf(error: unknown): string | undefined {
  const { broker, cause } = error as { broker?: string; cause?: unknown };
  return broker ?? (cause === undefined ? undefined : brokerOf(cause));
}
