import type { Registry } from 'prom-client';
import type { Logger } from '../log.ts';
import { declareReadGauge } from '../read-gauge.ts';
import { FileKeyRing, type KeysFileState } from './key-ring.ts';

/** Creates a key ring that follows a keys file, with the metrics of the file. */
export function createKeyRing(path: string, logger: Logger, registry: Registry): FileKeyRing {
  const keys = new FileKeyRing(path, logger);
  declareKeysFileMetrics(registry, () => keys.file);
  return keys;
}

/** Declares the metrics of a keys file. */
export function declareKeysFileMetrics(registry: Registry, read: () => KeysFileState): void {
  declareReadGauge(
    registry,
    {
      name: 'sluice_keys_file_age_seconds',
      help: 'Time since the keys file that is in force was modified; absent before a valid one was read.',
    },
    () => {
      const { modifiedMs } = read();
      return modifiedMs === undefined ? [] : [{ value: Math.max(0, Date.now() - modifiedMs) / 1_000 }];
    },
  );
  declareReadGauge(
    registry,
    {
      name: 'sluice_keys_file_valid',
      help: '1, or 0 while the keys file cannot be used: then the last valid keys stay in force.',
      ofWorkers: 'min',
    },
    () => [{ value: read().isValid ? 1 : 0 }],
  );
}
