import { exportFormat } from './exported-lines.ts';
import type { Format } from './format.ts';
import { posthogFormat } from './posthog-lines.ts';
import { segmentFormat } from './segment-lines.ts';
import { nativeFormat } from './submission-lines.ts';
import { trenchFormat } from './trench-lines.ts';

export type FormatName = 'native' | 'export' | 'segment' | 'posthog' | 'trench';

/** The formats of `--format`. */
export const FORMATS: Readonly<Record<FormatName, Format>> = {
  native: nativeFormat,
  export: exportFormat,
  segment: segmentFormat,
  posthog: posthogFormat,
  trench: trenchFormat,
};
