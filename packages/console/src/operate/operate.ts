// The pages for those who operate a workspace, and the state of the pipeline in a line.
import { deferred } from '../parts/parts.ts';

export { PipelineState } from './pipeline-state.tsx';

// One file for all of them, since whoever opens one opens others.
const loadPages = () => import('./operate-pages.ts');
export const AlertPage = deferred(() => loadPages().then((pages) => pages.AlertPage));
export const AlertsPage = deferred(() => loadPages().then((pages) => pages.AlertsPage));
export const DeadLetterPage = deferred(() => loadPages().then((pages) => pages.DeadLetterPage));
export const DeadLettersPage = deferred(() => loadPages().then((pages) => pages.DeadLettersPage));
export const DigestPage = deferred(() => loadPages().then((pages) => pages.DigestPage));
export const HealthPage = deferred(() => loadPages().then((pages) => pages.HealthPage));
export const KeysPage = deferred(() => loadPages().then((pages) => pages.KeysPage));
export const WebhookPage = deferred(() => loadPages().then((pages) => pages.WebhookPage));
export const WebhooksPage = deferred(() => loadPages().then((pages) => pages.WebhooksPage));
