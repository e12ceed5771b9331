// Deliveries of events to receivers: what is stored of webhooks, the routes that change it, and the deliverers.

export { AllowedAddresses } from './allowed-addresses.ts';
export { WebhookMetrics } from './webhook-metrics.ts';
export { WebhookOperations } from './webhook-operations.ts';
export { Webhooks } from './webhooks-component.ts';
export { registerWebhooks } from './webhooks-route.ts';
