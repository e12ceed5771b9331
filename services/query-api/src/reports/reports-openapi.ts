import type { PathDescriptions } from '@sluice/shared/http/openapi';
import type { CommonDescription } from '../openapi-schemas.ts';
import { activityPaths } from './activity-openapi.ts';
import { exportPaths } from './export-openapi.ts';
import { funnelPaths } from './funnel-openapi.ts';
import { menuPaths } from './menus-openapi.ts';
import { retentionPaths } from './retention-openapi.ts';
import { seriesPaths } from './series-openapi.ts';

/** Describes the reads that dashboards draw from. */
export function reportPaths(common: CommonDescription): PathDescriptions {
  return {
    ...seriesPaths(common),
    ...funnelPaths(common),
    ...retentionPaths(common),
    ...menuPaths(common),
    ...activityPaths(common),
    ...exportPaths(common),
  };
}
