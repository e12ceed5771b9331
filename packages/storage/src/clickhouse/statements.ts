import { readFileSync } from 'node:fs';
import type { Statement } from './statement.ts';

export type { Statement } from './statement.ts';

const fileOf = (name: string) => new URL(`./${name}.sql`, import.meta.url);

/** The name of the server that answers. Host and port are part of it, since a disk that was copied has the UUID of the other one. */
export const ANSWERING_SERVER = "concat(serverUUID(), ' ', hostName(), ':', tcpPort())";

/**
 * The condition that the server answers which a statement names; without a name, any will do. A sub-select is looked up before anything else, also
 * where there are no rows.
 */
const AT_OWN_SERVER = `(SELECT throwIf({server:String} NOT IN ('', ${ANSWERING_SERVER}), 'another server answers')) = 0`;

/** The statements on ownership, on positions, retention and removals, by their names. */
export const STATEMENTS = {
  ...readStatements(fileOf('ownership'), [
    'record-group',
    'read-groups',
    'record-identity',
    'record-server-name',
    'read-identity',
    'newest-epoch',
    'record-epoch',
    'end-older-statements',
    'find-longest-statement',
    'look-at-replica',
    'count-undecided-parts',
    'count-replicas',
    'find-statements-everywhere',
    'end-statements-everywhere',
    'read-sessions',
    'read-replicas',
    'record-replicas',
    'read-time',
    'close-session',
  ]),
  ...readStatements(fileOf('positions'), [
    'read-partitions',
    'store-positions',
    'choose-position',
    'record-topic-partitions',
    'read-topic-partitions',
    'record-grown-topics',
    'forget-smaller-topics',
    'record-halt',
    'keep-gap',
    'give-up-messages',
    'resume-partition',
    'read-newest-block',
    'record-progress',
  ]),
  ...readStatements(fileOf('stream-order'), ['look-at-blocks', 'read-reached', 'read-records', 'record-order']),
  ...readStatements(fileOf('retention'), ['record-retention', 'read-retention']),
  ...readStatements(fileOf('removals'), ['find-removals', 'end-failed-removals']),
} as const;

/**
 * Reads a file of statements, each of which begins with a line `-- name: …`. What comes before the first one is a comment. The words
 * AT_OWN_SERVER and ANSWERING_SERVER in them stand for what writers compare.
 *
 * @param names those in the file, in its order
 * @throws when the file has other ones
 */
export function readStatements<Name extends string>(
  file: URL,
  names: readonly Name[],
): Readonly<Record<Name, Statement>> {
  const [, ...parts] = readFileSync(file, 'utf8')
    .replaceAll('AT_OWN_SERVER', AT_OWN_SERVER)
    .replaceAll('ANSWERING_SERVER', ANSWERING_SERVER)
    .split(/^-- name: (.+)\n/m);
  const found = parts.flatMap((name, index) => (index % 2 ? [] : [{ name, sql: (parts[index + 1] ?? '').trim() }]));
  if (found.map(({ name }) => name).join() !== names.join())
    throw new Error(`${file} has other statements than ${names}`);
  return Object.fromEntries(found.map((statement) => [statement.name, statement])) as Record<Name, Statement>;
}
