import { mkdirSync } from 'node:fs';
import { styleText } from 'node:util';
import pretty from 'pino-pretty';
import { createStream, type RotatingFileStream } from 'rotating-file-stream';
import type { ShownLogs } from './settings.ts';

/** Each service's log file begins anew at this size; the one before is kept as `<service>.log.1`. */
const LOG_FILE_SIZE_MAX = '10M';
/** Levels of lines that nobody has to look at. */
const QUIET_LEVELS: readonly unknown[] = ['trace', 'debug', 'info'];

export interface Output {
  /** Prints a line of `npm start` itself. */
  say(line: string): void;
  /** Takes a line that a service wrote. */
  serviceLine(service: string, line: string): void;
}

export interface OutputOptions {
  /** Whether a person reads the stream: then it has colours. */
  readonly isTerminal: boolean;
  /** Gets a file `<service>.log` for each service; created if it is missing. */
  readonly logDir: string;
  /** Which lines of the services the stream shows besides. Their warnings, errors and plain text are always shown. */
  readonly logs: ShownLogs;
}

/**
 * The output of `npm start`. Services log JSON lines: all of them go to files. The stream shows warnings and errors as
 * sentences, and the other lines only if `logs` says so.
 */
export function createOutput(stream: NodeJS.WritableStream, options: OutputOptions): Output {
  const { isTerminal, logDir, logs } = options;
  const write = (line: string) => void stream.write(`${line}\n`);
  const format = pretty.prettyFactory({
    colorize: isTerminal,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname,name',
    singleLine: true,
  });
  const files = new Map<string, RotatingFileStream>();
  const fileOf = (service: string): RotatingFileStream => {
    const opened = files.get(service) ?? openLogFile(logDir, service);
    files.set(service, opened);
    return opened;
  };
  return {
    say: (line) => write(isTerminal ? styleText('bold', line) : line),
    serviceLine(service, line) {
      fileOf(service).write(`${line}\n`);
      if (logs === 'json') write(line);
      else if (logs === 'text' || !isQuiet(line)) {
        const prefix = isTerminal ? styleText('cyan', service) : service;
        for (const part of format(line).trimEnd().split('\n')) write(`${prefix} ${part}`);
      }
    },
  };
}

function openLogFile(logDir: string, service: string): RotatingFileStream {
  mkdirSync(logDir, { recursive: true });
  const name = (_time: number | Date | null, index?: number) => `${service}.log${index ? `.${index}` : ''}`;
  return createStream(name, { path: logDir, size: LOG_FILE_SIZE_MAX, rotate: 1 });
}

/** Whether nobody has to look at a line. One that is no JSON is from Node.js itself, and is always worth a look. */
function isQuiet(line: string): boolean {
  try {
    return QUIET_LEVELS.includes((JSON.parse(line) as { level?: unknown }).level);
  } catch {
    return false;
  }
}
