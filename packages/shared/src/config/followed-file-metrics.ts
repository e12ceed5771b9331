import type { Registry } from 'prom-client';
import { declareReadGauge } from '../service/read-gauge.ts';
import type { FollowedFileState } from './followed-file.ts';

/**
 * Declares the metrics of a file that is followed: its age, and whether it is valid.
 *
 * @param metric the first part of their names
 * @param file what the file is called
 */
export function declareFileMetrics(
  registry: Registry,
  { metric, file }: { readonly metric: string; readonly file: string },
  read: () => FollowedFileState,
): void {
  declareReadGauge(
    registry,
    {
      name: `${metric}_age_seconds`,
      help: `Time since the ${file} that is in force was modified; absent before a valid one was read.`,
    },
    () => {
      const { modifiedMs } = read();
      return modifiedMs === undefined ? [] : [{ value: Math.max(0, Date.now() - modifiedMs) / 1_000 }];
    },
  );
  declareReadGauge(
    registry,
    {
      name: `${metric}_valid`,
      help: `1, or 0 while the ${file} cannot be used: then the last valid one stays in force.`,
      ofWorkers: 'min',
    },
    () => [{ value: read().isValid ? 1 : 0 }],
  );
}
