/** The time of event 0. Each event is a millisecond later than the one before. */
const FIRST_MS = Date.UTC(2026, 2, 1, 12);

const PROPERTIES = JSON.stringify({
  plan: 'business',
  seats: 42,
  trial: false,
  price: 199.5,
  currency: 'EUR',
  source: 'invitation by a colleague',
  path: '/settings/team/members',
  tags: ['web', 'onboarding', 'team'],
  device: { os: 'Linux', browser: 'Firefox 140.0', width: 2560, height: 1440 },
  note: 'Sent by Ada.',
});

const CONTEXT = JSON.stringify({
  ip: '203.0.113.7',
  locale: 'en-GB',
  library: { name: 'sluice-js', version: '1.4.2' },
  page: { url: 'https://app.example/settings/team', title: 'Team members' },
});

/** An event of 600 bytes as JSON. Its UUID ends in its number, so that the sum of numbers shows which were stored. */
export function eventJson(number: number, anonymousId = 'anon-7f3a'): string {
  return `{"event":"member_invited","uuid":"${uuidOf(number)}","timestamp":"${new Date(timeOf(number)).toISOString()}","anonymousId":"${anonymousId}","properties":${PROPERTIES},"context":${CONTEXT}}`;
}

/** The same event as a track call of `@segment/analytics-node`. */
export function callJson(number: number): string {
  const { user, organization } = subjectsOf(number);
  const time = new Date(timeOf(number)).toISOString();
  return (
    `{"timestamp":"${time}","integrations":{},"userId":"${user}","groupId":"${organization}","event":"member_invited",` +
    `"anonymousId":"anon-7f3a","properties":${PROPERTIES},"type":"track","context":${CONTEXT},` +
    `"messageId":"node-next-${timeOf(number)}-${uuidOf(number)}","_metadata":{"nodeVersion":"26.10.0","jsRuntime":"node"}}`
  );
}

/** The same event as one of `posthog-node`, which has no context. */
export function posthogJson(number: number): string {
  const { user, organization } = subjectsOf(number);
  return (
    `{"distinct_id":"${user}","event":"member_invited","properties":{${PROPERTIES.slice(1, -1)},${CONTEXT.slice(1, -1)},` +
    `"$groups":{"company":"${organization}"},"$lib":"posthog-node","$lib_version":"5.70.0","$geoip_disable":true},` +
    `"type":"capture","library":"posthog-node","library_version":"5.70.0",` +
    `"timestamp":"${new Date(timeOf(number)).toISOString()}","uuid":"${uuidOf(number)}"}`
  );
}

/** What an OpenTelemetry log record carries of the event as its body, in JSON as a text. */
const LOG_BODY = JSON.stringify(`{"properties":${PROPERTIES},"context":${CONTEXT}}`);

/** The same event as a log record of OpenTelemetry, in the JSON of its protocol. */
export function logRecordJson(number: number): string {
  const { user, organization } = subjectsOf(number);
  const text = (key: string, value: string) => `{"key":"${key}","value":{"stringValue":"${value}"}}`;
  return (
    `{"timeUnixNano":"${timeOf(number)}000000","eventName":"member_invited","body":{"stringValue":${LOG_BODY}},` +
    `"attributes":[${text('uuid', uuidOf(number))},${text('userId', user)},${text('groupId', organization)},` +
    `${text('anonymousId', 'anon-7f3a')}]}`
  );
}

/** The user and the organization of the event, as the load generator submits it. */
export function subjectsOf(number: number): { readonly user: string; readonly organization: string } {
  return { user: `user-${number % 1_000}`, organization: `group-${number % 100}` };
}

/** The row that ingest-api creates of the event. */
export function rowJson(number: number): string {
  const { user, organization } = subjectsOf(number);
  return (
    `{"workspace_id":"test","timestamp":${timeOf(number)},"uuid":"${uuidOf(number)}","event":"member_invited",` +
    `"user_id":"${user}","group_id":"${organization}","anonymous_id":"anon-7f3a","properties":${PROPERTIES},` +
    `"context":${CONTEXT},"received_at":${Date.now() * 1_000}}`
  );
}

/** In milliseconds since 1970. */
export function timeOf(number: number): number {
  return FIRST_MS + number;
}

/** Its last twelve digits are the number. */
export function uuidOf(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
}
