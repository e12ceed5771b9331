// Messages about the numbers of views: the changes of alerts, and the digests of dashboards.

export { AlertMetrics } from './alert-metrics.ts';
export { registerAlerts } from './alerts-route.ts';
export { registerDigests } from './digests-route.ts';
export { numberSources } from './number-sources.ts';
