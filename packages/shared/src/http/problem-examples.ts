import { type InputError, Problem, type ProblemCode, problemBody } from './problem.ts';

interface Meaning {
  /** What the code means, for a table. */
  readonly summary: string;
  /** An example of its `detail`. */
  readonly detail: string;
  readonly errors?: readonly InputError[];
}

const MEANINGS: Readonly<Record<ProblemCode, Meaning>> = {
  invalid_request: {
    summary: 'The request has errors; `errors` names each',
    detail: 'The request has 2 errors.',
    errors: [
      { path: 'events.0.event', code: 'custom', message: 'must not be empty' },
      { path: 'colour', code: 'unknown_field', message: 'is not known' },
    ],
  },
  malformed_json: { summary: 'The body is missing, or is not JSON in UTF-8', detail: 'The body is not JSON.' },
  unauthorized: {
    summary: 'The key is missing or unknown. An unknown key is refused even where no key is needed',
    detail: 'The API key is not known.',
  },
  invalid_api_key: {
    summary: 'The same, to PostHog’s clients',
    detail: 'The API key is not known.',
  },
  missing_scope: {
    summary: 'The key lacks the scope of the operation',
    detail: 'The API key lacks the scope "query".',
  },
  not_found: { summary: 'The path, the user or the organization does not exist', detail: 'There is nothing here.' },
  method_not_allowed: {
    summary: 'The path does not have that method; `Allow` lists those that it has',
    detail: 'This path does not have that method.',
  },
  body_too_slow: {
    summary: 'The body did not arrive in time',
    detail: 'The body arrives too slowly; send it faster or in parts.',
  },
  position_lost: {
    summary: 'The stream position is too old, or unknown to the event store; connect without it',
    detail: 'The position is older than 7 days.',
  },
  body_too_large: {
    summary: 'The body, an event or a property is too large',
    detail: 'A part of the body is too large.',
    errors: [{ path: 'events.3', code: 'too_large', message: 'must be at most 262144 bytes as JSON' }],
  },
  unsupported_media_type: {
    summary: 'The body is not JSON, or has an unknown encoding',
    detail: 'The body must be application/json.',
  },
  host_not_allowed: {
    summary: 'The name in the header `Host` is not allowed',
    detail: 'This service is not reached by the name in the header Host.',
  },
  rate_limited: {
    summary: 'The key is over its rate; send the request again after `Retry-After` seconds',
    detail: 'The API key is over its limit of 50 a second; send the request again in 2 s.',
  },
  too_many_listeners: {
    summary: 'The workspace has its maximum number of stream clients',
    detail: '100 clients listen to this workspace already; close one, or try again later.',
  },
  not_replayable: {
    summary: 'The dead letter cannot be taken now either; `detail` says why',
    detail: 'Only the beginning of the call is kept.',
  },
  segment_in_use: {
    summary: 'Views or webhooks name the segment; `errors` says which',
    detail: 'Saved views or webhooks name the segment; change them first.',
  },
  merge_chain: {
    summary: 'One of the two users became somebody else, or somebody became it; `detail` says what to do',
    detail: 'The user "jane" became "jane.doe": merge into that one.',
  },
  internal: {
    summary: 'The service failed',
    detail: 'The service failed; its log has the cause under this request id.',
  },
  query_too_expensive: {
    summary: 'The query is over its budget of time or memory; narrow it down',
    detail: 'The query needs more time or memory than it may use; narrow it down.',
  },
  invalid_sql: {
    summary: 'The SQL has an error, or is not allowed; `detail` says which',
    detail: 'The SQL cannot be run: Unknown expression identifier `plan`',
    errors: [{ path: 'sql', code: 'unknown_identifier', message: 'Unknown expression identifier `plan`' }],
  },
  sql_not_available: {
    summary: 'SQL is off, or not available where servers have ranges of partitions; `detail` says which',
    detail: 'SQL is not available where servers have ranges of partitions.',
  },
  stream_not_available: {
    summary: 'This ClickHouse has no order in which events become visible, which a stream follows',
    detail: 'There is no stream of events with this ClickHouse. Read them from GET /events.',
  },
  webhooks_not_available: {
    summary: 'Webhooks are off',
    detail: 'Webhooks are off; the operator can turn them on.',
  },
  deletions_not_available: {
    summary: 'This service knows no ingest-api, which deletes users',
    detail: 'query-api knows no ingest-api: send DELETE /v1/users to that.',
  },
  example_not_available: {
    summary: 'This service knows no ingest-api, which takes the example data',
    detail: 'query-api knows no ingest-api, which takes the example data.',
  },
  workspace_not_empty: {
    summary: 'The workspace has events of its own',
    detail: 'The workspace has events of its own: example data would be among them.',
  },
  keys_read_only: {
    summary: 'Keys can only be changed by the operator here',
    detail: 'This service may not change the keys file here; the operator does, with "sluice keys".',
  },
  replay_not_available: {
    summary: 'Dead letters can only be replayed by the operator here',
    detail: 'This service cannot replay dead letters; the operator can, with "sluice dead-letters replay".',
  },
  views_not_available: {
    summary: 'Saved views are off',
    detail: 'Saved views are off; the operator can turn them on.',
  },
  event_log_unavailable: {
    summary: 'The event log cannot be reached; send the request again',
    detail: 'The event log cannot be reached; send the request again.',
  },
  store_unavailable: {
    summary: 'The event store cannot be reached; send the request again',
    detail: 'The event store cannot be reached; send the request again.',
  },
  clock_skewed: {
    summary: 'The clock of this instance is wrong; send the request again',
    detail: 'The clock of this instance is wrong; send the request again.',
  },
  overloaded: {
    summary: 'The service is busy; send the request again',
    detail: 'The service is busy; send the request again.',
  },
  keys_unavailable: {
    summary: 'The service cannot check keys yet; send the request again',
    detail: 'API keys cannot be checked now; send the request again.',
  },
};

/** An example of each problem's body, as the OpenAPI documents show it. */
export const PROBLEM_EXAMPLES = Object.fromEntries(
  Object.entries(MEANINGS).map(([code, { summary, detail, errors }]) => {
    const problem = new Problem(code as ProblemCode, detail, errors && { errors });
    return [code, { summary, value: problemBody(problem, '01a1fd80-94c9-72c2-a306-7ab1e84ef40f') }];
  }),
) as Readonly<Record<ProblemCode, { readonly summary: string; readonly value: ReturnType<typeof problemBody> }>>;
