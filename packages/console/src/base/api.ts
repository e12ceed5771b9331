import { signal } from '@preact/signals';
import type { components } from '../../../client/src/query-schema.ts';
import { parseRecords } from './records.ts';
import { forgetStatements } from './statements.ts';

export type Event = components['schemas']['Event'];
export type EventPage = components['schemas']['EventPage'];
export type User = components['schemas']['User'];
export type Organization = components['schemas']['Organization'];
export type IdentityPage = components['schemas']['IdentityPage'];
export type MergePage = components['schemas']['MergePage'];
export type UserPage = components['schemas']['UserPage'];
export type OrganizationPage = components['schemas']['OrganizationPage'];
export type UserOrganizationPage = components['schemas']['UserOrganizationPage'];
export type OrganizationUserPage = components['schemas']['OrganizationUserPage'];
export type EventSeries = components['schemas']['EventSeries'];
export type Overview = components['schemas']['Overview'];
export type EventNames = components['schemas']['EventNames'];
export type EventProperties = components['schemas']['EventProperties'];
export type EventValues = components['schemas']['EventValues'];
export type Funnel = components['schemas']['Funnel'];
export type Retention = components['schemas']['Retention'];
export type FunnelPeople = components['schemas']['FunnelPeople'];
export type RetentionPeople = components['schemas']['RetentionPeople'];
export type Pipeline = components['schemas']['Pipeline'];
export type PipelineHistory = components['schemas']['PipelineHistory'];
export type Audits = components['schemas']['Audits'];
export type Keys = components['schemas']['Keys'];
export type Key = components['schemas']['Key'];
export type CreatedKey = components['schemas']['CreatedKey'];
export type LoadedExample = components['schemas']['LoadedExample'];
export type DeadLetter = components['schemas']['DeadLetter'];
export type DeadLetterPage = components['schemas']['DeadLetterPage'];
export type DeadLetterReasons = components['schemas']['DeadLetterReasons'];
export type DeadLetterWithRow = components['schemas']['DeadLetterWithRow'];
export type Segment = components['schemas']['Segment'];
export type CountedSegment = components['schemas']['CountedSegment'];
export type Names = components['schemas']['Names'];
export type NamedEntity = components['schemas']['NamedEntity'];
export type Naming = components['schemas']['Naming'];
export type IdentitySettings = components['schemas']['IdentitySettings'];
export type NamingProperties = components['schemas']['NamingProperties'];
export type FastProperties = components['schemas']['FastPropertiesOutput'];
export type ProposedProperties = components['schemas']['ProposedProperties'];
export type FilledMonths = components['schemas']['FilledMonths'];
export type SearchResults = components['schemas']['SearchResults'];
export type FoundEntity = components['schemas']['FoundEntity'];
export type View = components['schemas']['View'];
export type Dashboard = components['schemas']['Dashboard'];
export type StoredDashboard = components['schemas']['StoredDashboard'];
export type DashboardLink = components['schemas']['DashboardLink'];
export type DashboardLinkWithKey = components['schemas']['DashboardLinkWithKey'];
export type Webhook = components['schemas']['Webhook'];
export type WebhookWithSecret = components['schemas']['WebhookWithSecret'];
export type Alert = components['schemas']['Alert'];
export type AlertWithSecret = components['schemas']['AlertWithSecret'];
export type Digest = components['schemas']['Digest'];
export type DigestWithSecret = components['schemas']['DigestWithSecret'];
export type WebhookTest = components['schemas']['WebhookTest'];
export type WebhookDelivery = components['schemas']['WebhookDelivery'];

/** Returns the identifier of a user or an organization. */
export function idOf(entity: { readonly foreignId: string } | { readonly foreignUserGroupId: string }): string {
  return 'foreignId' in entity ? entity.foreignId : entity.foreignUserGroupId;
}

/** An error response of query-api, or no response. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status of the response; 0 if there was none. */
  readonly status: number;
  /** Each error of the request as a sentence. */
  readonly errors: readonly string[];
  /** After how many milliseconds query-api wants to be asked again, if it said so. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, message: string, errors: readonly string[] = [], retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.errors = errors;
    this.retryAfterMs = retryAfterMs;
  }
}

interface Problem {
  readonly message?: string;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
}

/**
 * Sends a GET with the key.
 *
 * @param path without a leading slash
 * @throws {ApiError} after any other response than 2xx. After `401` the console asks for a key
 */
export async function request(path: string, init: RequestInit = {}, withKey = key.value): Promise<Response> {
  const headers = new Headers(init.headers);
  if (withKey !== '') headers.set('authorization', `Bearer ${withKey}`);
  // query-api is one folder above the console, wherever a proxy has put both.
  const url = new URL(path, new URL('../', document.baseURI));
  const response = await fetch(url, { ...init, headers }).catch((error) => {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, 'query-api does not respond.');
  });
  if (response.ok) return response;
  // The key of a link is not that of the person who signed in.
  if (response.status === 401 && withKey === key.value && (await isShut())) access.value = 'closed';
  const { message = `query-api responded ${response.status}.`, errors = [] } = await problemOf(response);
  throw new ApiError(
    response.status,
    message,
    // Of SQL the message has the only one already.
    errors.filter((error) => !message.includes(error.message)).map((error) => `${error.path} ${error.message}.`),
    retryAfterOf(response),
  );
}

/** Whether the console can read nothing now. Where a workspace is read without a key, a page may need one all the same. */
async function isShut(): Promise<boolean> {
  if (key.value !== '') return true;
  const response = await fetch(new URL(`../${READABLE}`, document.baseURI)).catch(() => undefined);
  // A body that nobody reads keeps its connection.
  await response?.arrayBuffer();
  return response?.status === 401;
}

/** What every key of the console may read. */
const READABLE = 'events?limit=0&total=none';

/** Returns the events, users or organizations of a response, with {@link parseRecords}; throws as {@link request} does. */
export async function getRecords<Body>(path: string, signal: AbortSignal, withKey = key.value): Promise<Body> {
  return parseRecords(await (await request(path, { signal }, withKey)).text()) as Body;
}

/** Returns the JSON of a response; throws as {@link request} does. */
export async function getJson<Body>(path: string, signal: AbortSignal): Promise<Body> {
  return await (await request(path, { signal })).json();
}

/** Sends a body as JSON; throws as {@link request} does. */
export async function sendJson(path: string, method: 'POST' | 'PUT' | 'PATCH', body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return await request(path, { method, headers, body: JSON.stringify(body) });
}

/** Finds out whether a key may read, `''` for none. */
export async function checkKey(candidate: string): Promise<void> {
  const response = await request(READABLE, {}, candidate);
  // A body that nobody reads keeps its connection.
  await response.arrayBuffer();
}

function retryAfterOf({ headers }: Response): number | undefined {
  const seconds = headers.get('retry-after');
  return seconds === null ? undefined : 1_000 * Number(seconds);
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    return Object(await response.json());
  } catch {
    return {};
  }
}

/** Returns all records of a list that has pages; throws as {@link request} does. */
export async function getAll<Name extends string, Listed>(
  name: Name,
  signal: AbortSignal,
): Promise<{ readonly [_ in Name]: readonly Listed[] }> {
  const all: Listed[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { readonly [_ in Name]: readonly Listed[] } & { readonly nextCursor: string | null } = await getJson(
      cursor === '' ? name : `${name}?cursor=${encodeURIComponent(cursor)}`,
      signal,
    );
    all.push(...page[name]);
    cursor = page.nextCursor;
  }
  return { [name]: all } as object as { readonly [_ in Name]: readonly Listed[] };
}

/** Returns where ingest-api listens next to this page, at the port that query-api knows, unless a proxy says otherwise. */
export function ingestUrl(): string {
  const port = document.querySelector('meta[name="ingest-port"]')?.getAttribute('content') ?? '4000';
  return `${location.protocol}//${location.hostname}:${port}`;
}

const ITEM = 'sluice-key';

/**
 * The API key, `''` without one. It is kept until the tab is closed, and sent in a header only: an address would be
 * logged.
 */
export const key = signal('');

/** `checking` until query-api has said whether the key may read; `open` when it may. */
export const access = signal<'checking' | 'open' | 'closed'>('checking');

/** Uses the key that this tab had before the page was loaded again. */
export function restoreKey(): void {
  key.value = sessionStorage.getItem(ITEM) ?? '';
}

/** Uses a key from now on, `''` for none. Who signs out leaves no statement behind. */
export function useKey(value: string): void {
  if (value === '') {
    sessionStorage.removeItem(ITEM);
    forgetStatements();
  } else sessionStorage.setItem(ITEM, value);
  key.value = value;
}
