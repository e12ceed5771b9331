import { styleText } from 'node:util';
import pretty from 'pino-pretty';

type Colour = 'cyan' | 'magenta' | 'yellow' | 'green';

export interface Output {
  /** Prints a line of `npm start` itself. */
  say(line: string): void;
  /** Prints a line that a service wrote. */
  serviceLine(service: string, line: string): void;
}

/**
 * The output of `npm start`. On a terminal, the JSON logs of the services become readable lines with a coloured prefix;
 * elsewhere they are printed as they are.
 */
export function createOutput(
  stream: NodeJS.WritableStream,
  isTerminal: boolean,
  services: Readonly<Record<string, Colour>>,
): Output {
  const write = (line: string) => void stream.write(`${line}\n`);
  if (!isTerminal) return { say: write, serviceLine: (_service, line) => write(line) };
  const format = pretty.prettyFactory({
    colorize: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname,name',
    singleLine: true,
  });
  const width = Math.max(...Object.keys(services).map((name) => name.length));
  return {
    say: (line) => write(styleText('bold', line)),
    serviceLine(service, line) {
      const prefix = styleText(services[service] ?? 'green', service.padEnd(width));
      for (const part of format(line).trimEnd().split('\n')) write(`${prefix} ${part}`);
    },
  };
}
