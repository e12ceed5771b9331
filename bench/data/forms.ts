import { callJson, eventJson, logRecordJson, posthogJson, subjectsOf } from './event.ts';

/**
 * What a request looks like. `calls`: batches of track calls, as `@segment/analytics-node` sends them; `posthog`: of events,
 * as `posthog-node` does; `otlp`: of log records, as OpenTelemetry's exporters send them in JSON; `of no visitor`: submissions
 * whose anonymous id means nobody, and is as long; `of new visitors`: with another one in each event.
 */
export type LoadForm = 'submissions' | 'calls' | 'posthog' | 'otlp' | 'of no visitor' | 'of new visitors';

interface Form {
  readonly path: string;
  /** The HTTP status of the response to what was accepted. */
  readonly status: number;
  /** The events of these numbers, in one request. */
  readonly bodyOf: (first: number, last: number, key: string) => string;
  /** Whether the uuids of the stored events have the numbers of the events. */
  readonly hasNumbers: boolean;
}

const SUBMISSIONS = { path: '/v1/public/userGroups', status: 202, hasNumbers: true };

export const FORMS: Readonly<Record<LoadForm, Form>> = {
  submissions: { ...SUBMISSIONS, bodyOf: (first, last) => submissionBody(first, last) },
  'of no visitor': { ...SUBMISSIONS, bodyOf: (first, last) => submissionBody(first, last, () => 'anonymous') },
  'of new visitors': { ...SUBMISSIONS, bodyOf: (first, last) => submissionBody(first, last, (event) => `v${event}`) },
  calls: { path: '/v1/batch', status: 200, bodyOf: callsBody, hasNumbers: false },
  posthog: { path: '/batch/', status: 200, bodyOf: posthogBody, hasNumbers: true },
  otlp: { path: '/v1/logs', status: 200, bodyOf: logsBody, hasNumbers: true },
};

function submissionBody(first: number, last: number, visitorOf?: (event: number) => string): string {
  const { user, organization } = subjectsOf(first);
  const events = listOf((number) => eventJson(number, visitorOf?.(number)), first, last);
  return `{"foreignUserGroupId":"${organization}","foreignUserId":"${user}","events":[${events}]}`;
}

function callsBody(first: number, last: number): string {
  return `{"batch":[${listOf(callJson, first, last)}],"sentAt":"2026-03-01T12:00:00.000Z"}`;
}

function posthogBody(first: number, last: number, key: string): string {
  return `{"api_key":"${key}","batch":[${listOf(posthogJson, first, last)}],"sent_at":"2026-03-01T12:00:00.000Z"}`;
}

function logsBody(first: number, last: number): string {
  return `{"resourceLogs":[{"scopeLogs":[{"logRecords":[${listOf(logRecordJson, first, last)}]}]}]}`;
}

function listOf(json: (number: number) => string, first: number, last: number): string {
  let text = json(first);
  for (let number = first + 1; number <= last; number += 1) text += `,${json(number)}`;
  return text;
}
