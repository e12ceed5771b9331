import type { Registry } from 'prom-client';
import type { Logger } from '../base/log.ts';
import type { FollowedFileState } from '../config/followed-file.ts';
import { declareFileMetrics } from '../config/followed-file-metrics.ts';
import { FileKeyRing } from './key-ring.ts';

/** Creates a key ring that follows a keys file, with the metrics of the file. */
export function createKeyRing(path: string, logger: Logger, registry: Registry): FileKeyRing {
  const keys = new FileKeyRing(path, logger);
  declareKeysFileMetrics(registry, () => keys.file);
  return keys;
}

/** Declares the metrics of a keys file. */
export function declareKeysFileMetrics(registry: Registry, read: () => FollowedFileState): void {
  declareFileMetrics(registry, { metric: 'sluice_keys_file', file: 'keys file' }, read);
}
