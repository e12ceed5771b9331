import { styleText } from 'node:util';
import pretty from 'pino-pretty';

type Colour = 'cyan' | 'magenta' | 'yellow' | 'green';

export interface Output {
  /** A line of `npm start` itself. */
  say(line: string): void;
  /** A line that one of the services wrote. */
  serviceLine(service: string, line: string): void;
}

/**
 * What `npm start` prints. On a terminal the services' JSON logs become readable lines behind a coloured prefix;
 * elsewhere they are passed on as they are.
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
