import type { Format } from './format.ts';
import { segmentFormat } from './segment-lines.ts';
import { nativeFormat } from './submission-lines.ts';
import { trenchFormat } from './trench-lines.ts';

export type FormatName = 'native' | 'segment' | 'trench';

/** The formats of `--format`. */
export const FORMATS: Readonly<Record<FormatName, Format>> = {
  native: nativeFormat,
  segment: segmentFormat,
  trench: trenchFormat,
};
