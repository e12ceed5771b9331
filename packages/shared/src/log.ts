import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** A structured logger: JSON lines with the service's name, on standard output by default; credentials never appear. */
export function createLogger(name: string, level: string, destination?: DestinationStream): Logger {
  const redact = ['req.headers.authorization', 'headers.authorization', 'password'];
  return pino({ name, level, redact }, ...(destination ? [destination] : []));
}
