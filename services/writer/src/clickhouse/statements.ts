import { readStatements } from './statement.ts';

const fileOf = (name: string) => new URL(`./${name}.sql`, import.meta.url);

/** The statements on ownership, on positions and for operators, by their names. */
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
    'resume-partition',
    'read-newest-block',
    'record-progress',
  ]),
  ...readStatements(fileOf('operations'), [
    'record-retention',
    'read-retention',
    'read-server-state',
    'read-pending-erasures',
    'read-backup-age',
    'read-comparisons',
  ]),
} as const;
