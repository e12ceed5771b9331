import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/** Creates a logger that writes JSON lines with the service's name, by default on standard output. It hides credentials. */
export function createLogger(name: string, level: string, destination?: DestinationStream): Logger {
  const redact = ['req.headers.authorization', 'headers.authorization', 'password'];
  return pino({ name, level, redact }, ...(destination ? [destination] : []));
}
