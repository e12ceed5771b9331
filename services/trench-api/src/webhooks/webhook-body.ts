import { invalidRequest, Problem } from '@sluice/shared/http/problem';
import { z } from 'zod';

/** How many types or names a webhook may have: a list of a filter has no more. */
const LIST_MAX = 100;

/** Stands for all types or names. */
const ALL = '*';

const list = (description: string) =>
  z
    .array(z.string('must be a string').min(1, 'must not be empty'), 'must be a list')
    .min(1, 'must not be empty')
    .max(LIST_MAX, `must have at most ${LIST_MAX} items`)
    .default([ALL])
    .meta({ description });

/** The body of `POST /webhooks` and `PUT /webhooks/{uuid}`. Unknown members do nothing, as in Trench. */
export const webhookBody = z
  .object({
    url: z.string('must be a string').meta({ description: 'Where events are sent by POST.' }),
    enableBatching: z
      .boolean('must be true or false')
      .default(true)
      .meta({ description: 'Decides nothing: deliveries are always batches, so that `data` is a list.' }),
    eventTypes: list('Types of the events that are sent. Default: `*`, all.'),
    eventNames: list('Names of the events that are sent. Default: `*`, all.'),
    flatten: z
      .literal(false, 'must be false: deliveries are not flattened')
      .default(false)
      .meta({ description: 'Must be false.' }),
  })
  .meta({ id: 'WebhookBody' });

/** A webhook as Trench shows it. */
export const shownWebhook = z
  .object({
    uuid: z.string(),
    url: z.string(),
    enableBatching: z.boolean(),
    eventTypes: z.array(z.string()),
    eventNames: z.array(z.string()),
    flatten: z.literal(false),
    createdAt: z.string().meta({ description: 'ISO 8601, in UTC.' }),
  })
  .meta({ id: 'Webhook' });

type ShownWebhook = z.output<typeof shownWebhook>;

/** The response to a creation: the only time that the secret is shown. */
export const createdWebhook = shownWebhook
  .extend({ secret: z.string().meta({ description: 'Signs the deliveries, as Standard Webhooks says.' }) })
  .meta({ id: 'CreatedWebhook' });

export const shownWebhooks = z
  .object({ results: z.array(shownWebhook), limit: z.literal(0), offset: z.literal(0), total: z.int() })
  .meta({ id: 'Webhooks' });

/** A webhook of query-api. */
export const storedWebhook = z.object({
  id: z.string(),
  url: z.string(),
  filter: z.record(z.string(), z.string()),
  batched: z.boolean(),
  createdAt: z.string(),
});

type StoredWebhook = z.output<typeof storedWebhook>;

/** The filters of query-api that stand for a list of Trench. */
const FILTERS = { eventTypes: 'type[in]', eventNames: 'event[in]' } as const;

/** Returns the body that query-api takes for a body of Trench. @throws {Problem} `invalid_request` naming every error */
export function queryBody(body: unknown): { readonly url: string; readonly filter: object; readonly batched: true } {
  const { success, data, error } = webhookBody.safeParse(body);
  if (!success) throw invalidRequest(error.issues);
  const { url, eventTypes, eventNames } = data;
  const filter = {
    ...(!eventTypes.includes(ALL) && { [FILTERS.eventTypes]: joined(eventTypes) }),
    ...(!eventNames.includes(ALL) && { [FILTERS.eventNames]: joined(eventNames) }),
  };
  return { url, filter, batched: true };
}

/** Returns a webhook of query-api as Trench shows it. Filters that Trench does not have are left out. */
export function shownOf({ id, url, filter, batched, createdAt }: StoredWebhook): ShownWebhook {
  const items = (name: string) => (filter[name] === undefined ? [ALL] : split(filter[name]));
  return {
    ...{ uuid: id, url, enableBatching: batched },
    ...{ eventTypes: items(FILTERS.eventTypes), eventNames: items(FILTERS.eventNames) },
    ...{ flatten: false, createdAt },
  };
}

/** Joins items to a list of a filter. */
function joined(items: readonly string[]): string {
  return items.map((item) => item.replaceAll(/[\\,]/g, String.raw`\$&`)).join(',');
}

/** Returns the items of a list of a filter. */
function split(text: string): string[] {
  return (text.match(/(?:[^\\,]|\\.)+/gs) ?? []).map((item) => item.replaceAll(/\\(.)/gs, '$1'));
}

/** Returns a problem of query-api with the names of Trench. */
export function withTheirNames({ code, message, errors, headers, cause }: Problem): Problem {
  const names = new Map(Object.entries(FILTERS).map(([name, filter]) => [`filter.${filter}`, name]));
  const renamed = errors?.map((error) => ({ ...error, path: names.get(error.path) ?? error.path }));
  return new Problem(code, message, { ...(renamed && { errors: renamed }), headers, cause });
}
