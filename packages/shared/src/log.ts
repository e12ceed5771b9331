import { type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** A structured logger: JSON lines on standard output, with the service's name; credentials never appear. */
export function createLogger(name: string, level: string): Logger {
  return pino({ name, level, redact: ['req.headers.authorization', 'headers.authorization', 'password'] });
}
