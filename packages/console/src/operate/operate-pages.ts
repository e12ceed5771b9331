// The pages for those who operate a workspace, which are loaded together.
export { AlertPage, DigestPage } from './alert-page.tsx';
export { AlertsPage } from './alerts-page.tsx';
export { DeadLetterPage } from './dead-letter-page.tsx';
export { DeadLettersPage } from './dead-letters-page.tsx';
export { HealthPage } from './health-page.tsx';
export { KeysPage } from './keys-page.tsx';
export { WebhookPage } from './webhook-page.tsx';
export { WebhooksPage } from './webhooks-page.tsx';
