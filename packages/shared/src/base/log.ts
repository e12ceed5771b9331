import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

/**
 * Creates a logger that writes JSON lines with the service's name and the name of the level, by default on standard output.
 * It hides credentials.
 */
export function createLogger(name: string, level: string, destination?: DestinationStream): Logger {
  const redact = ['req.headers.authorization', 'headers.authorization', 'password'];
  const formatters = { level: (label: string) => ({ level: label }) };
  return pino({ name, level, redact, formatters }, ...(destination ? [destination] : []));
}
