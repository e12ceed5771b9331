// Deliveries of events to receivers: what is stored of webhooks, the routes that change it, and the deliverers.

export { AllowedAddresses } from './allowed-addresses.ts';
export type { DeliverySource, OpenSource, PassedOver, Sendable, SentMessage } from './delivery-source.ts';
export { describeManaged, type ManagedRoutes, managedSchema, registerManaged } from './managed-routes.ts';
export { messageId } from './signature.ts';
export type { StoredWebhook, Webhook, WebhookKind } from './webhook.ts';
export { WebhookMetrics } from './webhook-metrics.ts';
export type { ManagedKind } from './webhook-operations.ts';
export { addressErrors, stateParameter, urlParameter } from './webhook-request.ts';
export { Webhooks } from './webhooks-component.ts';
export { registerWebhooks } from './webhooks-route.ts';
