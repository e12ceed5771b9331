import type { PathDescriptions } from '@sluice/shared/http/openapi';
import type { CommonDescription } from '../openapi-schemas.ts';

/** Describes the reads that dashboards draw from. */
export function reportPaths(_common: CommonDescription): PathDescriptions {
  return {};
}
