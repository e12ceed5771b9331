import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = import.meta.dirname;

/** The folders and the clients of engines that the files of a folder may import. */
const IMPORTS = {
  protocol: ['kafkajs'],
  clickhouse: ['protocol', '@clickhouse/client'],
  kafka: ['protocol', 'kafkajs'],
  loop: ['protocol', 'clickhouse', 'kafka', 'kafkajs'],
  erasure: ['clickhouse', '@clickhouse/client'],
} as const;

test.each(Object.entries(IMPORTS))('%s/ imports no other folder and no other client than it may', (folder, allowed) => {
  const known = [folder, ...allowed];
  expect(importsOf(folder).filter(({ target }) => !known.includes(target))).toEqual([]);
});

test('protocol/ runs no code of a client', () => {
  const code = importsOf('protocol').filter(({ target, onlyTypes }) => target === 'kafkajs' && !onlyTypes);
  expect(code).toEqual([]);
});

interface Import {
  readonly file: string;
  /** A folder of the writer, or a client of an engine. */
  readonly target: string;
  readonly onlyTypes: boolean;
}

/** Returns what the files of a folder import of other folders and of clients, tests excepted. */
function importsOf(folder: string): Import[] {
  const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
  return files
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .flatMap((name) => {
      const file = join(folder, name);
      const imports = readFileSync(join(ROOT, file), 'utf8').matchAll(/^(?:import|export)\b[^;]*? from '([^']+)';$/gm);
      return [...imports].flatMap(([statement, specifier = '']) => {
        const target = targetOf(file, specifier);
        return target === undefined ? [] : [{ file, target, onlyTypes: statement.startsWith('import type ') }];
      });
    });
}

function targetOf(file: string, specifier: string): string | undefined {
  if (specifier === 'kafkajs' || specifier === '@clickhouse/client') return specifier;
  if (!specifier.startsWith('.')) return undefined;
  const path = relative(ROOT, join(ROOT, dirname(file), specifier));
  // config.ts and metrics.ts stand beside the folders.
  return path.includes('/') ? path.split('/')[0] : undefined;
}
