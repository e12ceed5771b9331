import { isIP } from 'node:net';
import { type InputError, Problem, parseBody } from '@sluice/shared/http/problem';
import { queryOf } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { type KnownSegments, refuseErrors } from '../records/records.ts';
import { parseStreamRequest } from '../stream/stream.ts';
import type { AllowedAddresses } from './allowed-addresses.ts';

export const URL_CHARACTERS_MAX = 2_000;
/** Members of a filter, and the text of each, in characters. */
export const FILTERS_MAX = 50;
export const FILTER_CHARACTERS_MAX = 2_000;

/** The address of a receiver. */
export const urlParameter = z
  .url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' })
  .max(URL_CHARACTERS_MAX, `must have at most ${URL_CHARACTERS_MAX} characters`)
  .refine((text) => {
    const parsed = URL.parse(text);
    return !parsed || (parsed.username === '' && parsed.password === '' && parsed.hash === '');
  }, 'must have no login and no #')
  .meta({
    description:
      'Where events are sent by POST. Its host must have public addresses, unless the operator allows others. Redirects are not followed.',
  });

const filterText = z.string().max(FILTER_CHARACTERS_MAX, `must have at most ${FILTER_CHARACTERS_MAX} characters`);

const filter = z
  .record(z.string(), filterText)
  .refine((value) => Object.keys(value).length <= FILTERS_MAX, `must have at most ${FILTERS_MAX} members`)
  .meta({
    description:
      'Which events are sent: the filters of `GET /events` without its dates, as an object. `{}`: all of the workspace.',
    example: { event: 'signed_up', 'properties.plan[in]': 'pro,team' },
  });

const batched = z.boolean().meta({
  description: 'Whether a delivery has up to 100 events, gathered for 5 s at most, instead of one event.',
});

/** The body of `POST /webhooks`. */
export const newWebhookSchema = z
  .strictObject({ url: urlParameter, filter: filter.default({}), batched: batched.default(false) })
  .meta({ id: 'NewWebhook' });

/** The state that a client asks for. */
export const stateParameter = z
  .enum(['active', 'paused'])
  .meta({ description: '`active` goes on where it stopped; `paused` sends nothing until it is active again.' });

/** The body of `PATCH /webhooks/ID`: what is missing stays as it is. */
export const webhookChangeSchema = z
  .strictObject({
    url: urlParameter.optional(),
    filter: filter.optional(),
    batched: batched.optional(),
    state: stateParameter.optional(),
  })
  .meta({ id: 'WebhookChange' });

export type NewWebhook = z.output<typeof newWebhookSchema>;
export type WebhookChange = z.output<typeof webhookChangeSchema>;

/** What bodies are checked with. */
export interface WebhookRules {
  readonly addresses: AllowedAddresses;
  readonly segments: KnownSegments;
}

/** What is checked besides the form. */
interface Checked {
  readonly url?: NewWebhook['url'] | undefined;
  readonly filter?: NewWebhook['filter'] | undefined;
}

/**
 * Parses a body.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export async function parseWebhook<Output extends Checked>(
  schema: z.ZodType<Output>,
  body: unknown,
  workspace: string,
  { addresses, segments }: WebhookRules,
): Promise<Output> {
  const request = parseBody(schema, body);
  const { url: address, filter: filters } = request;
  refuseErrors(addressErrors(address, addresses));
  if (filters !== undefined) await requireValid(filters, workspace, segments);
  return request;
}

/** Returns what is wrong with an address. What a name stands for is checked when it is connected to. */
export function addressErrors(address: string | undefined, addresses: AllowedAddresses): InputError[] {
  const host = address === undefined ? '' : new URL(address).hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(host) === 0 || addresses.has(host)) return [];
  return [{ path: 'url', code: 'custom', message: 'must not have an address that is not public' }];
}

async function requireValid(
  filters: Readonly<Record<string, string>>,
  workspace: string,
  segments: KnownSegments,
): Promise<void> {
  if (Object.hasOwn(filters, 'after')) {
    const errors = [{ path: 'filter.after', code: 'unknown_parameter', message: 'is no filter' }];
    throw new Problem('invalid_request', 'The request has an error.', { errors });
  }
  try {
    parseStreamRequest(await segments.inQuery(workspace, queryOf(filters)), undefined, workspace);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const errors = error.errors?.map((one) => ({ ...one, path: `filter.${one.path}` }));
    throw new Problem(error.code, error.message, errors && { errors });
  }
}
