import type { PathDescriptions } from '@sluice/shared/http/openapi';
import type { CommonDescription } from '../http/openapi-schemas.ts';
import { activityPaths } from './activity/activity-openapi.ts';
import { exportPaths } from './export/export-openapi.ts';
import { funnelPaths } from './funnel/funnel-openapi.ts';
import { menuPaths } from './menus/menus-openapi.ts';
import { retentionPaths } from './retention/retention-openapi.ts';
import { seriesPaths } from './series/series-openapi.ts';

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
