import type { PlantedFault } from './planted-fault.ts';

const kafka = (name: string) => `services/ingest-api/src/kafka/${name}`;
const posthog = (name: string) => `packages/submissions/src/calls/posthog/${name}`;
const http = (name: string) => `services/ingest-api/src/http/${name}`;

/** Faults of ingest-api that prove its simulator: it has to find each of them within a minute. */
export const PLANTED_INGEST_FAULTS: readonly PlantedFault[] = [
  {
    name: 'ingest/results-of-another-topic',
    file: kafka('batch-sender.ts'),
    search: 'found.topicName === topic && found.partition === partition',
    replacement: 'found.partition === partition',
    breaks: 'Rows of one topic count as acknowledged when those of the other are.',
  },
  {
    name: 'ingest/empty-workspace-kept',
    file: kafka('partition-queue.ts'),
    search: 'if (queue?.delete(rows) && queue.size === 0) this.#waiting.delete(rows.workspace);',
    replacement: 'queue?.delete(rows);',
    breaks: 'After a request has timed out, nothing is sent to its partition any more.',
  },
  {
    name: 'ingest/sending-for-ever',
    file: kafka('broker-lanes.ts'),
    search: 'for (const { target } of bundles) target.isSending = false;',
    replacement: '',
    breaks: 'A partition gets one send.',
  },
  {
    name: 'ingest/failed-rows-dropped',
    file: kafka('broker-lanes.ts'),
    search: 'if (!item.expired) target.queue.add(item);',
    replacement: 'if (item.expired) target.queue.add(item);',
    breaks: 'What is not acknowledged is not sent again, but for what nobody waits for.',
  },
  {
    name: 'ingest/batch-halved-to-itself',
    file: kafka('broker-lanes.ts'),
    search: 'Math.ceil(bytes / 2)',
    replacement: 'bytes',
    breaks: 'A record batch that is too large is sent again as it is.',
  },
  {
    name: 'ingest/refused-row-sent-again',
    file: kafka('broker-lanes.ts'),
    search: 'if (items.length > 1) {',
    replacement: 'if (items.length > 0) {',
    breaks: 'A row that Kafka never takes is sent until its request times out.',
  },
  {
    name: 'ingest/one-row-too-few',
    file: kafka('row-publisher.ts'),
    search: 'let remaining = rows.length;',
    replacement: 'let remaining = Math.max(1, rows.length - 1);',
    breaks: 'A request is accepted while one of its partitions has not acknowledged.',
  },
  {
    name: 'ingest/leaders-followed-once',
    file: kafka('topic-watch.ts'),
    search: '        this.#checking = undefined;\n',
    replacement: '',
    breaks: 'Only the first move of a leader is followed.',
  },
  {
    name: 'ingest/clock-set-by-minutes',
    file: kafka('broker-clock.ts'),
    search: 'this.#options.config.CLOCK_SKEW_MS_MAX / 2;',
    replacement: 'this.#options.config.CLOCK_SKEW_MS_MAX * 100;',
    breaks: 'A clock that is set by minutes is trusted until the next comparison.',
  },
  {
    name: 'ingest/clock-behind',
    file: kafka('broker-clock.ts'),
    search: 'this.#isWrong = Math.abs(aheadMs) >',
    replacement: 'this.#isWrong = aheadMs >',
    breaks: 'A clock that is behind is trusted.',
  },
  {
    name: 'ingest/refused-requests-keep-memory',
    file: http('admission.ts'),
    search: '      request.reservation?.release();\n      const { statusCode: status } = reply;',
    replacement: '      const { statusCode: status } = reply;',
    breaks: 'The memory of a request is never released.',
  },
  {
    name: 'ingest/deletion-in-all-but-one',
    file: 'packages/submissions/src/rows/partition-rows.ts',
    search: 'for (let partition = 0; partition < count; partition += 1) this.#append(',
    replacement: 'for (let partition = 0; partition < Math.max(1, count - 1); partition += 1) this.#append(',
    breaks: 'The last partition does not get deletions.',
  },
  {
    name: 'ingest/rejected-call-by-another-number',
    file: 'packages/submissions/src/calls/call-rows.ts',
    search: 'rejected.push({ index, ...result.error, reason: result.reason });',
    replacement: 'rejected.push({ index: rejected.length, ...result.error, reason: result.reason });',
    breaks: 'A client is told that another call was rejected.',
  },
  {
    name: 'ingest/deletion-repeated-as-new',
    file: 'services/ingest-api/src/routes/delete-user.ts',
    search: 'new Date(Math.ceil(version / 1_000)).toISOString()',
    replacement: 'new Date(Math.ceil(version / 1_000) + 60_000).toISOString()',
    breaks: 'A deletion that is sent again covers what was accepted since.',
  },
  {
    name: 'ingest/once-as-always',
    file: posthog('posthog-event.ts'),
    search: "changes.push({ ...changeOf('$set_once', name, given), once: true });",
    replacement: "changes.push(changeOf('$set_once', name, given));",
    breaks: 'What is set once replaces what was there.',
  },
  {
    name: 'ingest/last-group',
    file: posthog('posthog-event.ts'),
    search: "for (const [type, key] of Object.entries(objectIn('$groups', groups) ?? {})) {",
    replacement: "for (const [type, key] of Object.entries(objectIn('$groups', groups) ?? {}).toReversed()) {",
    breaks: 'The organization of an event is the last of its groups.',
  },
  {
    name: 'ingest/anonymous-as-user',
    file: posthog('posthog-event.ts'),
    search: "properties.get('$process_person_profile') === false ||",
    replacement: '',
    breaks: 'A person without a profile becomes a user.',
  },
  {
    name: 'ingest/before-that-is-now',
    file: 'services/ingest-api/src/routes/delete-user.ts',
    search: 'Math.min(versions.next(), before === undefined ? Number.POSITIVE_INFINITY : before * 1_000)',
    replacement: 'versions.next()',
    breaks: 'A deletion with a time deletes what came since.',
  },
];
