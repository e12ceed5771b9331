import { createHash, createHmac } from 'node:crypto';

export interface SignedMessage {
  readonly id: string;
  /** In seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * Returns the header `webhook-signature`: of each secret an HMAC-SHA256 of id, timestamp and body, as Standard Webhooks says
 * (https://github.com/standard-webhooks/standard-webhooks).
 *
 * @param secrets each `whsec_` and a key in base64
 */
export function signatures({ id, timestamp, body }: SignedMessage, secrets: readonly string[]): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(secret.indexOf('_') + 1), 'base64');
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
    })
    .join(' ');
}

/** Returns the `webhook-id` of some events: the same for the same events of a webhook, also after a restart. */
export function messageId(webhook: string, keys: readonly string[]): string {
  const hash = createHash('sha256').update(webhook);
  for (const key of keys) hash.update('\n').update(key);
  return `msg_${hash.digest('base64url').slice(0, 32)}`;
}
