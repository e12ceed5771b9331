import type { Logger } from '@sluice/shared/base/log';

type Level = 'error' | 'warn' | 'info';

/**
 * Creates the logger of a simulated process: its lines become part of the trace of a schedule.
 *
 * @param onLine called with the message of each line
 */
export function createTraceLogger(
  note: (line: string) => void,
  onLine: (level: Level, message: string) => void = () => {},
): Logger {
  const line =
    (level: Level) =>
    (fields: object | string, message = '') => {
      note(typeof fields === 'string' ? `${level} ${fields}` : `${level} ${message} ${json(fields)}`);
      onLine(level, typeof fields === 'string' ? fields : message);
    };
  const ignore = () => {};
  const logger = {
    ...{ fatal: line('error'), error: line('error'), warn: line('warn'), info: line('info') },
    ...{ debug: ignore, trace: ignore, isLevelEnabled: (level: string) => level !== 'debug' && level !== 'trace' },
  };
  return Object.assign(logger, { child: () => logger }) as unknown as Logger;
}

/** Without stack traces: they name the folder of the project, and a trace is the same on every machine. */
function json(fields: object): string {
  return JSON.stringify(fields, (name, value) => {
    if (name === 'stack') return undefined;
    return typeof value === 'bigint' ? String(value) : value;
  });
}
