import { type ChangeRow, type EventRow, PARTITIONS_HEADER } from '@sluice/shared/rows';
import { entityHash, eventHash } from '@sluice/shared/rows/row-hashes';
import type { RejectedCall } from '@sluice/submissions/calls/rejected-call';
import type { LogRecord, PartitionLog } from '../kafka/partition-log.ts';
import type { ProducerEvents, Sent } from '../kafka/produce.ts';
import type { Node } from '../kafka/simulated-kafka.ts';
import type { SimulatedProcess } from '../world/simulated-process.ts';
import type { HttpResponse } from './ingest-place.ts';
import type { IngestSide } from './ingest-side.ts';
import { identitiesOf, identityOfLine, identityOfRejected, linesOf, type SentLine } from './row-identity.ts';
import { SendingRules } from './sending-rules.ts';
import { deletedUser, type Submission } from './submission.ts';

/** By how much the version of a row may differ from Kafka's time, in milliseconds: versions of a process do not repeat. */
const CLOCK_MS_MAX = 50;

/** The errors that ingest-api logs, each with what has to have happened before. */
const EXPECTED_ERRORS: readonly (readonly [text: string, cause: keyof Causes])[] = [
  ["this machine's clock is wrong", 'clockWasSet'],
  ['Kafka refuses rows as too large', 'wasTooLarge'],
  ['Kafka has lost messages', 'hasLost'],
];

/** What ingest-api logs when something has to be sent again. */
const FAILURES = ['sending to Kafka failed', 'Kafka refuses'];

interface Causes {
  clockWasSet: boolean;
  wasTooLarge: boolean;
  hasLost: boolean;
}

/** A row in a log. */
interface Copy {
  readonly log: PartitionLog;
  readonly record: LogRecord;
  readonly row: EventRow | ChangeRow;
}

/** What clients were told, compared with what Kafka has. */
export class IngestOracle implements ProducerEvents {
  readonly #side: IngestSide;
  readonly #rules: SendingRules;
  readonly causes: Causes = { clockWasSet: false, wasTooLarge: false, hasLost: false };
  /** When each row could be sent first, by its identity, in milliseconds of virtual time. */
  readonly #knownSince = new Map<string, number>();
  readonly #copies = new Map<string, Copy[]>();
  /** The uuids of events, by their keys. */
  readonly #uuids = new Map<string, string>();
  readonly #lost = new Set<LogRecord>();
  /** Up to which version deletions that are repeated delete. */
  readonly #deletedBefore = new Map<string, number>();
  readonly #unheard = new Set<string>();

  constructor(side: IngestSide) {
    this.#side = side;
    this.#rules = new SendingRules({
      time: side.world.time,
      report: (violation) => this.#report(violation),
    });
  }

  /** A client is about to submit something. */
  begin(submission: Submission): void {
    if (submission.isTooLarge) this.causes.wasTooLarge = true;
    for (const identity of identitiesOf(submission)) this.#limit(identity, beforeOf(submission));
    for (const identity of [...identitiesOf(submission), ...seenBeside(submission)]) {
      if (!this.#knownSince.has(identity)) this.#knownSince.set(identity, this.#side.world.time.nowMs);
    }
  }

  /** An operator is about to send an event in place of a rejected call. It is as old as the call. */
  beginReplay(call: RejectedCall, identity: string): void {
    const knownSince = this.#knownSince.get(identityOfRejected(call.workspace_id, call.call));
    if (knownSince !== undefined) this.#knownSince.set(identity, knownSince);
  }

  /** Nothing of a user whose deletions all have a time is deleted after the latest of them. */
  #limit(identity: string, beforeMs: number | undefined): void {
    if (beforeMs === undefined) this.#deletedBefore.delete(identity);
    else this.#deletedBefore.set(identity, Math.max(beforeMs * 1_000, this.#deletedBefore.get(identity) ?? 0));
  }

  addLost(records: readonly LogRecord[]): void {
    for (const record of records) this.#lost.add(record);
    if (records.length > 0) this.causes.hasLost = true;
  }

  /** A client was told with what time to repeat its deletion. */
  limitDeletion(submission: Submission, before: string): void {
    const [identity = ''] = identitiesOf(submission);
    const ms = Date.parse(before);
    if (beforeOf(submission) === undefined) this.#deletedBefore.set(identity, ms * 1_000);
    if (ms > this.#side.world.time.dateMs + CLOCK_MS_MAX)
      this.#report(`${nameOf(identity)} is to be repeated as of ${before}`);
  }

  /** No response came: what was sent may take effect at any later time. */
  addUnheard(submission: Submission): void {
    for (const identity of identitiesOf(submission)) this.#unheard.add(identity);
  }

  /** A client was told that its submission is accepted: Kafka has all of it. */
  checkAccepted(submission: Submission, response: HttpResponse): void {
    if (deletedUser(submission) !== undefined) {
      this.#checkDeletion(submission);
      return;
    }
    for (const identity of identitiesOf(submission)) {
      if (!this.#copies.has(identity)) this.#report(`${nameOf(identity)} was accepted, and Kafka does not have it`);
    }
    if (submission.request.url.startsWith('/v1/public/')) this.#checkUuids(submission, response);
    else this.#checkRejected(submission, response);
  }

  #checkDeletion(submission: Submission): void {
    const partitions = this.#side.config.KAFKA_PARTITIONS;
    const [identity = ''] = identitiesOf(submission);
    const byChange = Map.groupBy(this.#copies.get(identity) ?? [], ({ row }) => (row as ChangeRow).change_id);
    const isWhole = [...byChange.values()].some((copies) => new Set(copies.map(({ log }) => log)).size === partitions);
    if (!isWhole) this.#report(`${nameOf(identity)} was accepted, and not every partition has it`);
  }

  /** Which calls were rejected is told exactly. */
  #checkRejected({ id, rejected }: Submission, { body }: HttpResponse): void {
    const { rejected: told = [] } = JSON.parse(body) as { rejected?: readonly { index: number }[] };
    const [expected, found] = [[...rejected.keys()].join(), told.map(({ index }) => index).join()];
    if (expected !== found) this.#report(`of ${id} the calls ${found} were rejected, not ${expected}`);
  }

  #checkUuids({ id, actions }: Submission, { body }: HttpResponse): void {
    const keys = actions.flatMap((action) => (action.kind === 'events' ? action.events : [])).map(({ key }) => key);
    const { events } = JSON.parse(body) as { events: readonly { uuid: string }[] };
    const isSame = keys.length === events.length && keys.every((key, at) => this.#uuids.get(key) === events[at]?.uuid);
    if (!isSame) this.#report(`the uuids in the response to ${id} are not those in Kafka`);
  }

  appended(log: PartitionLog, records: readonly LogRecord[], sent: Sent): void {
    if (log.topic === this.#side.clockTopic) return;
    const lines = records.flatMap((record) => {
      const ofRecord = linesOf(record);
      if (String(record.headers[PARTITIONS_HEADER]) !== String(this.#side.config.KAFKA_PARTITIONS)) {
        this.#report(`a record of ${log.topic} does not say how many partitions there are`);
      }
      for (const line of ofRecord) this.#addLine(line, { log, record, row: line.row });
      return ofRecord;
    });
    this.#rules.appended(log, records, lines, sent);
  }

  #addLine(line: SentLine, copy: Copy): void {
    const identity = identityOfLine(line);
    const copies = this.#copies.get(identity);
    if (copies) copies.push(copy);
    else this.#copies.set(identity, [copy]);
    const knownSince = this.#knownSince.get(identity);
    if (knownSince === undefined) this.#report(`${nameOf(identity)} was never submitted`);
    else this.#checkVersion(identity, line, knownSince);
    this.#checkPlace(identity, line, copy.log);
    if (identity.startsWith('delete')) this.#checkBefore(identity, line);
    if (line.kind === 'events') this.#checkEvent(line.row as EventRow);
  }

  /** Versions decide what a deletion hides: they are right whatever the clocks of machines say. */
  #checkVersion(identity: string, { kind, row }: SentLine, knownSince: number): void {
    const version = kind === 'changes' ? (row as ChangeRow).version : (row as EventRow).received_at;
    const { time } = this.#side.world;
    const ms = version / 1_000 - (time.dateMs - time.nowMs);
    const isEarly = ms < knownSince - CLOCK_MS_MAX && !identity.startsWith('delete');
    if (isEarly || ms > time.nowMs + CLOCK_MS_MAX) {
      this.#report(`the version of ${nameOf(identity)} is ${Math.floor(ms - time.nowMs)} ms off`);
    }
  }

  /** What came between two attempts of a deletion stays. */
  #checkBefore(identity: string, { row }: SentLine): void {
    const before = this.#deletedBefore.get(identity) ?? Number.POSITIVE_INFINITY;
    if ((row as ChangeRow).version > before && !this.#unheard.has(identity)) {
      this.#report(`${nameOf(identity)} is sent again and covers what came since`);
    }
  }

  /** Repeats of an event meet in its partition, changes of an entity in theirs. */
  #checkPlace(identity: string, { kind, row }: SentLine, { topic, partition }: PartitionLog): void {
    const { topics, config } = this.#side;
    const isChange = kind === 'changes' && (row as ChangeRow).operation !== 'delete';
    const { kind: entity, id } = row as ChangeRow;
    const hash = isChange
      ? entityHash(row.workspace_id, entity, id)
      : kind === 'events'
        ? eventHash((row as EventRow).uuid)
        : undefined;
    const isRight = hash === undefined || hash % config.KAFKA_PARTITIONS === partition;
    if (!isRight || topic !== (isChange ? topics.entities : topics.events)) {
      this.#report(`${nameOf(identity)} is in partition ${partition} of ${topic}`);
    }
  }

  #checkEvent({ uuid, properties, stamped, timestamp, received_at }: EventRow): void {
    const key = String(properties?.['key']);
    const known = this.#uuids.get(key) ?? uuid;
    this.#uuids.set(key, known);
    if (known !== uuid || (!key.includes('/') && !key.startsWith(uuid))) this.#report(`${key} has the uuid ${uuid}`);
    if (stamped && timestamp !== Math.floor(received_at / 1_000)) this.#report(`${key} is stamped with another time`);
  }

  refused(log: PartitionLog, node: Node, errorCode: number, sent: Sent): void {
    if (log.topic !== this.#side.clockTopic) this.#rules.refused(log, node, errorCode, sent);
  }

  acknowledged(log: PartitionLog, offset: number): void {
    if (log.topic !== this.#side.clockTopic) this.#rules.acknowledged(log, offset);
  }

  /** An error needs a person, so there has to be a reason. */
  checkLog(process: SimulatedProcess, level: string, message: string): void {
    if (FAILURES.some((text) => message.startsWith(text))) this.#rules.disturb(process);
    if (level !== 'error') return;
    const isExpected = EXPECTED_ERRORS.some(([text, cause]) => message.startsWith(text) && this.causes[cause]);
    if (!isExpected) this.#report(`${process.name} logs the error "${message}"`);
  }

  #report(violation: string): void {
    this.#side.world.report(violation);
  }
}

/** Rows that a submission may have besides those that tell whether it was accepted. */
function seenBeside(submission: Submission): string[] {
  return identitiesOf({ ...submission, actions: submission.actions.filter(({ kind }) => kind !== 'events') });
}

/** The time of a deletion, in milliseconds since 1970, if it has one. */
function beforeOf({ actions: [action] }: Submission): number | undefined {
  return action?.kind === 'delete' ? action.before : undefined;
}

function nameOf(identity: string): string {
  return identity.split('\0').filter(Boolean).join(' ');
}
