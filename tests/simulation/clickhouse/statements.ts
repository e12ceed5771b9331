import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { isVisitor, visitorOf } from '@sluice/shared/rows/deleted-person';
import { nameOf, type TopicPartition } from '@sluice/storage/protocol/position';
import type { Submitted } from '@sluice/storage/protocol/repeats';
import { STAGED_COLUMNS } from '@sluice/writer/batch/staging-tables';
import { boundList, columnsOf, listOf, newestLists } from './fast-columns.ts';
import { DAY_MS, MINUTE_MS, refuse } from './refusal.ts';
import {
  type DeadLetterRow,
  type EntityRow,
  type EpochRow,
  eventKey,
  type HaltRow,
  isHidden,
  type PropertyRow,
  personKey,
  type Sighting,
  type StagedEvent,
  type StoredEvent,
  see,
  type Tables,
  timesAfter,
  userKey,
  WEEK_US,
} from './tables.ts';
import { type DeletionOfUser, deletableUsersOf, deletedWith, factKey, factOf } from './visitor-owner.ts';

const YEAR_2000_MS = Date.UTC(2000);
const YEAR_2100_MS = Date.UTC(2100);

/** A string in JSON, as a regular expression. */
const STRING = '"(?:[^"\\\\]|\\\\.)*"';

const EVENT_COLUMNS: ReadonlySet<string> = new Set(['line', ...STAGED_COLUMNS.events]);
const CHANGE_COLUMNS: ReadonlySet<string> = new Set(['line', ...STAGED_COLUMNS.changes]);

/** The temporary tables of a session, or those that were sent with a statement. */
export interface Session {
  /** Whether they were sent: what violates a constraint is then left out, and not refused. */
  readonly isCarried?: boolean;
  events?: StagedEvent[] | undefined;
  changes?: ChangeRow[] | undefined;
  originals?: StoredEvent[] | undefined;
  /** The places of repeats among its events. */
  repeats?: Set<number> | undefined;
  deletions?: Map<string, number> | undefined;
  /** The keys of its events that another insert was storing when their repeats were looked for. */
  conflicts?: ReadonlySet<string> | undefined;
  numbered?: { line: number; violated: string }[] | undefined;
}

export interface Call {
  readonly tables: Tables;
  readonly session: Session;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** What an INSERT was sent. */
  readonly lines: readonly string[];
  /** The server's clock, in milliseconds since 1970. */
  readonly nowMs: number;
  /** What the server calls itself. */
  readonly answering: string;
}

/** What a statement returns: rows, or how many it has written. */
export interface Result {
  readonly rows?: readonly object[];
  readonly written?: number;
  /** Rows of a temporary table that the client keeps, in the format Native. */
  readonly blocks?: Buffer | undefined;
}

interface HaltParameters extends Pick<HaltRow, 'topic' | 'partition' | 'reason' | 'detail'> {
  readonly firstOffset: bigint | null;
  readonly lastOffset: bigint | null;
}

interface DueParameters {
  readonly delayMs: number;
  readonly afterMs: number;
  readonly afterWorkspace: string;
  readonly afterUser: string;
  readonly usersMax: number;
}

interface UnsettledParameters extends Pick<DueParameters, 'delayMs' | 'afterWorkspace' | 'afterUser'> {
  readonly deletionsMax: number;
  readonly afterVersion: number;
}

/** What the statements of the writer do to the tables, by their names. Each is done at one moment. */
export const STATEMENT_EFFECTS: Readonly<Record<string, (call: Call) => Result>> = {
  'record-group'({ tables, parameters }) {
    if (tables.groups.size === 0) tables.groups.add(parameters['group'] as string);
    return {};
  },
  'read-groups': ({ tables }) => ({ rows: [...tables.groups].map((groupId) => ({ groupId })) }),
  'record-identity'({ tables, parameters, nowMs }) {
    const { server, group, partitions } = parameters as { server: string; group: string; partitions: string };
    const identity = { id: `${group} since ${nowMs}`, server, groupId: group, partitions };
    if (tables.identities.length === 0) tables.identities.push({ ...identity, state: 'complete', detail: '' });
    return {};
  },
  'record-server-name'({ tables, parameters }) {
    const [newest] = tables.identities;
    if (newest) tables.identities.unshift({ ...newest, server: parameters['server'] as string });
    return {};
  },
  'read-identity': ({ tables, answering }) => ({
    rows: tables.identities.map((identity) => ({ ...identity, answering })),
  }),
  // Readers alone use it.
  'read-newest-block': () => ({ rows: [{ newest: 0 }] }),
  'record-progress'({ tables, parameters }) {
    tables.throughMs = Math.max(tables.throughMs, parameters['throughMs'] as number);
    return {};
  },
  'record-topic-partitions'({ tables, parameters }) {
    for (const topic of parameters['topics'] as string[]) {
      if (!tables.topicPartitions.has(topic)) tables.topicPartitions.set(topic, parameters['partitions'] as number);
    }
    return {};
  },
  'read-topic-partitions': ({ tables, parameters }) => ({
    rows: [...tables.topicPartitions]
      .filter(([topic]) => (parameters['topics'] as string[]).includes(topic))
      .map(([topic, partitions]) => ({ topic, partitions }))
      .toSorted((one, other) => (one.topic < other.topic ? -1 : 1)),
  }),
  'newest-epoch'({ tables }) {
    const newest = newestEpoch(tables);
    if (!newest) return { rows: [] };
    const same = tables.epochs.filter((epoch) => !isOlder(epoch, newest));
    const { incarnation, generation } = newest;
    return { rows: [{ incarnation, generation, leaderIds: [...new Set(same.map(({ leaderId }) => leaderId))] }] };
  },
  'record-epoch'({ tables, parameters }) {
    const { incarnation, generation, leaderId } = parameters as unknown as EpochRow;
    tables.epochs.push({ incarnation, generation, leaderId });
    return {};
  },
  'record-ended-batch'({ tables, parameters }) {
    tables.ended.add(parameters['attempt'] as string);
    return {};
  },
  'record-replicas'({ tables, parameters, nowMs }) {
    const { replicas, isGone } = parameters as { replicas: string[]; isGone: boolean };
    for (const replica of replicas) {
      const changedAt = Math.max(nowMs, (tables.replicas.get(replica)?.changedAt ?? 0) + 1);
      tables.replicas.set(replica, { replica, isGone, changedAt });
    }
    return {};
  },
  'read-replicas': ({ tables, nowMs }) => ({
    rows: [...tables.replicas.values()].map(({ replica, isGone, changedAt }) => ({
      ...{ replica, isGone, ageMs: nowMs - changedAt },
    })),
  }),
  'read-time': ({ nowMs }) => ({ rows: [{ nowMs }] }),
  'stage-events'({ session }) {
    if (session.events) refuse('TABLE_ALREADY_EXISTS');
    session.events = [];
    return {};
  },
  'stage-changes'({ session }) {
    if (session.changes) refuse('TABLE_ALREADY_EXISTS');
    session.changes = [];
    return {};
  },
  'load-events'({ session, lines }) {
    const rows = parseRows<EventRow>(lines, EVENT_COLUMNS).map(withDefaults);
    const kept = rows.filter((row) => violatedByEvent(row) === '');
    if (kept.length < rows.length && !session.isCarried) refuse('VIOLATED_CONSTRAINT');
    stagedEvents(session).push(...kept);
    return { written: kept.length };
  },
  'load-changes'({ session, lines }) {
    const rows = parseRows<ChangeRow>(lines, CHANGE_COLUMNS);
    const kept = rows.filter((row) => violatedByChange(row) === '');
    if (kept.length < rows.length && !session.isCarried) refuse('VIOLATED_CONSTRAINT');
    stagedChanges(session).push(...kept);
    return { written: kept.length };
  },
  'number-events'({ session }) {
    session.numbered = [];
    return {};
  },
  'number-changes'({ session }) {
    session.numbered = [];
    return {};
  },
  'load-numbered-events': ({ session, lines }) => loadNumberedEvents(session, lines),
  'load-numbered-changes': ({ session, lines }) => loadNumberedChanges(session, lines),
  'load-numbered-events-skipping': ({ session, lines }) => loadNumberedEvents(session, parseable(lines, EVENT_COLUMNS)),
  'load-numbered-changes-skipping': ({ session, lines }) =>
    loadNumberedChanges(session, parseable(lines, CHANGE_COLUMNS)),
  'read-numbered-events': ({ session }) => ({ rows: session.numbered ?? [] }),
  'read-numbered-changes': ({ session }) => ({ rows: session.numbered ?? [] }),
  'inspect-events'({ tables, session }) {
    const events = stagedEvents(session);
    const stamped = events.filter((event) => event.stamped);
    const timed = events.filter((event) => event.stamped || isTimedByReceipt(event));
    const users = new Set(events.map(personOfEvent));
    const oldest = smallest(events.map(({ received_at }) => received_at));
    const lastDeletion = lastDeletionOf(tables, users);
    const row = {
      events: events.length,
      keys: new Set(events.map(eventKey)).size,
      partitions: new Set(events.map(monthOf)).size,
      stamped_events: stamped.length,
      timed_events: timed.length,
      timed_uuids: new Set(timed.map(identityOf)).size,
      first_stamped: smallest(stamped.map(({ timestamp }) => timestamp)),
      last_stamped: Math.max(0, ...stamped.map(({ timestamp }) => timestamp)),
      stamped_periods: [...new Set(stamped.map(({ timestamp }) => Math.floor(timestamp / (10 * MINUTE_MS))))].sort(
        (one, other) => one - other,
      ),
      were_deleted: lastDeletion > 0 ? 1 : 0,
      may_be_deleted: lastDeletion >= oldest ? 1 : 0,
      fast: newestLists(tables.fastLists)
        .filter(({ workspace, set }) => set !== '0' && events.some(({ workspace_id }) => workspace_id === workspace))
        .map(({ workspace, set, names }) => [workspace, set, names]),
    };
    return { rows: [row] };
  },
  'inspect-changes'({ tables, session }) {
    const changes = stagedChanges(session);
    const count = (...operations: string[]) => changes.filter(({ operation }) => operations.includes(operation)).length;
    const users = new Set(changes.filter(({ kind }) => kind === 'user').map(({ id }) => id));
    const oldest = smallest(changes.map(({ version }) => version));
    const lastDeletion = lastDeletionOf(tables, users);
    const row = {
      seen: count('seen'),
      properties: count('set', 'set_once', 'remove'),
      deletions: count('delete'),
      links: changes.filter(({ kind }) => kind === 'visitor').length,
      were_deleted: count('delete') > 0 || lastDeletion > 0 ? 1 : 0,
      may_be_deleted: count('delete') > 0 || lastDeletion >= oldest ? 1 : 0,
    };
    return { rows: [row] };
  },
  'find-deletions'({ tables, session }) {
    if (session.deletions) refuse('TABLE_ALREADY_EXISTS');
    const staged = stagedChanges(session).filter(({ kind }) => kind === 'user');
    const users = new Set([
      ...stagedEvents(session).map(personKey),
      ...staged.map(({ workspace_id, id }) => userKey(workspace_id, id)),
    ]);
    const found = new Map([...tables.deletions].filter(([user]) => users.has(user)));
    for (const { operation, workspace_id, id, version } of staged) {
      const user = userKey(workspace_id, id);
      if (operation === 'delete') found.set(user, Math.max(version, found.get(user) ?? 0));
    }
    session.deletions = found;
    return {};
  },
  'count-deleted-rows'({ session }) {
    const events = stagedEvents(session).filter((event) => isDeletedEvent(session, event)).length;
    const changes = stagedChanges(session).filter((change) => isDeletedChange(session, change)).length;
    return { rows: [{ events, changes }] };
  },
  'store-seen-in-deleted-events'({ tables, session }) {
    for (const event of stagedEvents(session)) {
      if (event.group_id !== '' && isDeletedEvent(session, event)) {
        see(tables, [event.workspace_id, 'organization', event.group_id, ''], sightingOf(event));
      }
    }
    return {};
  },
  'drop-deleted-events'({ session }) {
    session.events = stagedEvents(session).filter((event) => !isDeletedEvent(session, event));
    return {};
  },
  'drop-deleted-changes'({ session }) {
    session.changes = stagedChanges(session).filter((change) => !isDeletedChange(session, change));
    return {};
  },
  'store-deletions'({ tables, session }) {
    for (const { workspace_id, id, version } of deletionsOf(session)) {
      const user = userKey(workspace_id, id);
      tables.deletions.set(user, Math.max(version, tables.deletions.get(user) ?? 0));
    }
    return {};
  },
  'store-pending-deletions'({ tables, session, nowMs }) {
    for (const { workspace_id, id, version } of deletionsOf(session)) {
      tables.pendingDeletions.push({ workspace: workspace_id, user: id, version, storedAtMs: nowMs });
    }
    return {};
  },
  'store-identity-deletions'({ tables, session }) {
    for (const { workspace_id: workspace, id: user, version } of deletionsOf(session)) {
      const key = [workspace, user, version].join('\0');
      if (!isVisitor(user) && !tables.identityDeletions.has(key))
        tables.identityDeletions.set(key, { workspace, user, version, settledAtMs: 0 });
    }
    return {};
  },
  'store-links'({ tables, session }) {
    for (const fact of stagedChanges(session).flatMap((change) => factOf(change) ?? [])) {
      const { workspace, version } = fact;
      const isNeeded = (user: string) => {
        const ofUser = [...tables.identityDeletions.values()].filter(
          (deletion) => deletion.workspace === workspace && deletion.user === user && version <= deletion.version,
        );
        return ofUser.length === 0 || ofUser.some(({ settledAtMs }) => settledAtMs === 0);
      };
      if (deletableUsersOf(fact).every(isNeeded)) tables.links.set(factKey(fact), fact);
    }
    return {};
  },
  'store-properties': storeProperties,
  'store-sightings'({ tables, session }) {
    for (const { kind, operation, workspace_id, id, version, group_id = '' } of stagedChanges(session)) {
      if (kind === 'user' && operation === 'seen')
        tables.sightings.push({ workspace: workspace_id, user: id, version, group: group_id });
    }
    return {};
  },
  'store-seen-in-changes': (call) => storeSeenInChanges(call, () => ''),
  'store-seen-in-changes-since-deletions': (call) =>
    storeSeenInChanges(call, ({ workspace_id, id, version }) => deletionBefore(call.tables, workspace_id, id, version)),
  'find-repeats'({ tables, session }) {
    const keys = new Set(stagedEvents(session).map(eventKey));
    if (session.originals) refuse('TABLE_ALREADY_EXISTS');
    session.originals = tables.events.filter((event) => keys.has(eventKey(event)));
    return { written: session.originals.length };
  },
  'find-stamped-repeats'({ tables, session, parameters }) {
    const { first_stamped, last_stamped } = parameters as { first_stamped: number; last_stamped: number };
    const stamped = stagedEvents(session).filter((event) => event.stamped);
    const uuids = new Set(stamped.map(identityOf));
    const found = tables.events.filter(
      (event) =>
        uuids.has(identityOf(event)) &&
        isTimedByReceipt(event) &&
        event.timestamp >= first_stamped - 10 * MINUTE_MS &&
        event.timestamp <= last_stamped + 10 * MINUTE_MS,
    );
    session.originals = [...originalsOf(session), ...found];
    return { written: found.length };
  },
  'drop-hidden-originals'({ tables, session }) {
    session.originals = originalsOf(session).filter((event) => !isHidden(tables, event));
    return {};
  },
  'drop-stored-repeats'({ session }) {
    const known = new Set(originalsOf(session).map(eventKey));
    session.events = stagedEvents(session).filter((event) => !known.has(eventKey(event)));
    return {};
  },
  'read-possible-repeats'({ session }) {
    const staged = stagedEvents(session);
    const [originals, byIdentity] = [originalsOf(session), Map.groupBy(staged, identityOf)];
    const stored = originals
      .filter((event) => byIdentity.has(identityOf(event)))
      .map(({ stamped: _stamped, ...event }) => submittedAt(-1, event));
    const identities = new Set(originals.map(identityOf));
    const mayRepeat = (event: StagedEvent) =>
      identities.has(identityOf(event)) || (byIdentity.get(identityOf(event)) ?? []).length > 1;
    return {
      rows: [
        ...new Map(stored.map((event) => [JSON.stringify(event), event])).values(),
        ...staged.flatMap((event, place) => (mayRepeat(event) ? [submittedAt(place, event)] : [])),
      ],
    };
  },
  'stage-repeats'({ session }) {
    if (session.repeats) refuse('TABLE_ALREADY_EXISTS');
    session.repeats = new Set();
    return {};
  },
  'load-repeats'({ session, lines }) {
    const repeats = session.repeats ?? refuse('UNKNOWN_TABLE');
    for (const line of lines) repeats.add((JSON.parse(line) as { place: number }).place);
    return { written: lines.length };
  },
  'drop-repeats'({ session }) {
    const repeats = session.repeats ?? refuse('UNKNOWN_TABLE');
    session.events = stagedEvents(session).filter((_, place) => !repeats.has(place));
    return {};
  },
  'store-seen-in-events': (call) => storeSeenInEvents(call, () => ''),
  'store-seen-in-events-since-deletions': (call) =>
    storeSeenInEvents(call, ({ workspace_id, user_id, received_at }) =>
      deletionBefore(call.tables, workspace_id, user_id, received_at),
    ),
  'store-dead-letters'({ tables, lines }) {
    tables.deadLetterTime += 1;
    const state = { stateAt: tables.deadLetterTime, isReplayed: false };
    for (const line of lines) {
      const { id, row, ...deadLetter } = JSON.parse(line) as DeadLetterRow & { id: string };
      tables.deadLetters.set(id, { ...deadLetter, ...state, row: Buffer.from(row, 'base64').toString() });
    }
    return { written: lines.length };
  },
  'read-dead-letter'({ tables, parameters }) {
    tables.deadLetterTime += 1;
    const { id } = parameters as { id: string };
    const found = tables.deadLetters.get(id);
    if (!found) return { rows: [] };
    const { stateAt: _stateAt, isReplayed: _isReplayed, row, ...columns } = found;
    const row64 = Buffer.from(row).toString('base64');
    return { rows: [{ ...columns, id, readAt: String(tables.deadLetterTime), row64 }] };
  },
  'mark-dead-letter-replayed'({ tables, parameters }) {
    const { id, readAt } = parameters as { id: string; readAt: string };
    const found = tables.deadLetters.get(id);
    if (!found) return { written: 0 };
    const marked = { ...found, stateAt: Number(readAt), isReplayed: true };
    if (marked.stateAt >= found.stateAt) tables.deadLetters.set(id, marked);
    return { written: 1 };
  },
  'store-positions'({ tables, parameters }) {
    requireNewestEpoch(tables, parameters);
    const { topics, partitions, from, offsets, fingerprints, leaderEpochs } = parameters as Record<string, never[]>;
    const rows = (topics ?? []).map((topic: string, index) => ({
      topic,
      partition: partitions?.[index] as unknown as number,
      from: Number(from?.[index]),
      nextOffset: Number(offsets?.[index]),
      fingerprint: fingerprints?.[index] as unknown as string,
      leaderEpoch: leaderEpochs?.[index] as unknown as number,
    }));
    for (const { topic, partition, from: next } of rows) {
      const stored = tables.positions.get(nameOf({ topic, partition }))?.nextOffset ?? 0;
      if (stored < next)
        refuse('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO', 'ClickHouse does not have the stored position any more');
    }
    for (const { from: _from, ...row } of rows) {
      const stored = tables.positions.get(nameOf(row));
      const { nextOffset = -1, storedAt = 0 } = stored ?? {};
      if (row.nextOffset <= nextOffset) continue;
      tables.positions.set(nameOf(row), { ...row, storedAt: storedAt + row.nextOffset - nextOffset });
    }
    return {};
  },
  'read-partitions'({ tables }) {
    const noPosition = { nextOffset: null, fingerprint: null, leaderEpoch: null };
    const noHalt = { reason: null, detail: null, firstOffset: null, lastOffset: null, haltedAt: null };
    const positions = [...tables.positions.values()].map((position) => ({
      ...{ topic: position.topic, partition: position.partition },
      ...{ nextOffset: String(position.nextOffset), fingerprint: position.fingerprint },
      ...{ leaderEpoch: position.leaderEpoch, ...noHalt },
    }));
    const active = [...tables.halts.values()].filter(({ isResumed }) => !isResumed);
    const halts = active.map(({ topic, partition, reason, detail, firstOffset, lastOffset }) => {
      const haltedAt = '2026-03-01 12:00:00.000';
      return { topic, partition, ...noPosition, reason, detail, firstOffset, lastOffset, haltedAt };
    });
    return { rows: [...positions, ...halts] };
  },
  'choose-position'({ tables, parameters, nowMs }) {
    const { topic, partition, offset } = parameters as { topic: string; partition: number; offset: bigint };
    const storedAt = Math.max(nowMs, (tables.positions.get(nameOf({ topic, partition }))?.storedAt ?? 0) + 1);
    const row = { topic, partition, nextOffset: Number(offset), fingerprint: '', leaderEpoch: -1, storedAt };
    tables.positions.set(nameOf(row), row);
    return {};
  },
  'record-halt'({ tables, parameters, nowMs }) {
    // An operator has no epoch.
    if ((parameters['incarnation'] as number) > 0) requireNewestEpoch(tables, parameters);
    const { topic, partition, reason, detail, firstOffset, lastOffset } = parameters as unknown as HaltParameters;
    const text = (offset: bigint | null) => (offset === null ? null : String(offset));
    const offsets = { firstOffset: text(firstOffset), lastOffset: text(lastOffset) };
    const stateAt = Math.max(nowMs, (tables.halts.get(nameOf({ topic, partition }))?.stateAt ?? 0) + 1);
    const halt = { topic, partition, reason, detail, ...offsets, isResumed: false, stateAt };
    tables.halts.set(nameOf({ topic, partition }), halt);
    return {};
  },
  'keep-gap'({ tables, parameters }) {
    const { topic, partition } = parameters as unknown as TopicPartition;
    const halt = tables.halts.get(nameOf({ topic, partition }));
    if (halt && halt.reason !== 'by hand') tables.gaps.push(halt);
    return {};
  },
  'resume-partition'({ tables, parameters }) {
    const name = nameOf(parameters as unknown as TopicPartition);
    const halt = tables.halts.get(name);
    if (halt) tables.halts.set(name, { ...halt, isResumed: true, stateAt: halt.stateAt + 1 });
    return {};
  },
  'find-due-erasures'({ tables, parameters, nowMs }) {
    const { delayMs, afterMs, afterWorkspace, afterUser, usersMax } = parameters as unknown as DueParameters;
    const byUser = Map.groupBy(tables.pendingDeletions, ({ workspace, user }) => userKey(workspace, user));
    const rows = [...byUser.values()].flatMap((deletions) => {
      const [first] = deletions;
      const stored_ms = Math.max(...deletions.map(({ storedAtMs }) => storedAtMs));
      if (!first || stored_ms > nowMs - delayMs) return [];
      const isUnsettled = [...tables.identityDeletions.values()].some(
        ({ workspace, user, settledAtMs }) =>
          workspace === first.workspace && user === first.user && (settledAtMs === 0 || settledAtMs > nowMs - delayMs),
      );
      if (isUnsettled) return [];
      const deleted_version = Math.max(...deletions.map(({ version }) => version));
      return [{ workspace_id: first.workspace, user_id: first.user, deleted_version, stored_ms }];
    });
    const keyOf = (ms: number, workspace: string, user: string) =>
      `${String(ms).padStart(16, '0')}\0${workspace}\0${user}`;
    const after = keyOf(afterMs, afterWorkspace, afterUser);
    const due = rows
      .map((row) => ({ key: keyOf(row.stored_ms, row.workspace_id, row.user_id), row }))
      .filter(({ key }) => key > after)
      .sort((one, other) => (one.key < other.key ? -1 : 1));
    return { rows: due.slice(0, usersMax).map(({ row }) => row) };
  },
  'find-deleted-rows'({ tables, parameters }) {
    const versions = versionsOf(parameters);
    const found = new Map<string, object>();
    const add = (workspace_id: string, user_id: string, version: number, source: string, partition = '') => {
      if (version > (versions.get(userKey(workspace_id, user_id)) ?? -1)) return;
      found.set([workspace_id, user_id, source, partition].join('\0'), { workspace_id, user_id, source, partition });
    };
    for (const event of tables.events) {
      if (event.user_id !== '') add(event.workspace_id, event.user_id, event.received_at, 'events', event.month);
    }
    for (const { workspace, kind, id, change } of tables.properties.values()) {
      if (kind === 'user') add(workspace, id, change.version, 'properties');
    }
    for (const { workspace, user, version } of tables.sightings) add(workspace, user, version, 'sightings');
    for (const fact of tables.links.values()) {
      for (const user of deletableUsersOf(fact)) add(fact.workspace, user, fact.version, 'links');
    }
    for (const { workspace, kind, id, otherId, version } of tables.entities.values()) {
      if (kind === 'user') add(workspace, id, Number(otherId) + 1, 'entities');
      if (kind === 'membership') add(workspace, id, version, 'entities');
    }
    for (const { workspace_id, user_id, version } of [...tables.deadLetters.values()].map(subjectOf)) {
      add(workspace_id, user_id, version, 'dead-letters');
    }
    return { rows: [...found.values()] };
  },
  'find-events-of-visitors'({ tables, parameters }) {
    const versions = visitorVersionsOf(parameters);
    const found = tables.events.filter(
      (event) => event.user_id === '' && event.received_at <= (versions.get(personKey(event)) ?? -1),
    );
    const rows = found.map(({ workspace_id, anonymous_id = '', month: partition }) => ({
      ...{ workspace_id, anonymous_id, partition },
    }));
    return { rows: [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()] };
  },
  // No event expires.
  'record-retention': () => ({}),
  'read-retention': () => ({ rows: [] }),
  'read-declared-properties': ({ tables }) => ({
    rows: newestLists(tables.fastLists)
      .map(({ workspace, set, names }) => ({ workspace, set, names }))
      .toSorted((one, other) => (one.workspace < other.workspace ? -1 : 1)),
  }),
  'find-unfilled-columns'({ tables, parameters }) {
    const partitions = tables.events.filter(isUnfilled(parameters)).map(({ month }) => month);
    return {
      rows: [...new Set(partitions)]
        .toSorted()
        .toReversed()
        .map((partition) => ({ partition })),
    };
  },
  'fill-columns'({ tables, parameters }) {
    const mustFill = isUnfilled(parameters);
    tables.events = tables.events.map((event) => {
      if (event.month !== parameters['partition'] || !mustFill(event)) return event;
      return { ...event, fast: columnsOf(event, filledList(event, parameters)) };
    });
    return {};
  },
  'end-failed-removals': () => ({}),
  // There is no cold volume.
  'find-waiting-events': () => ({}),
  'find-removals': () => ({ rows: [] }),
  'erase-events': (call) => eraseEvents(call, versionsOf(call.parameters), ({ user_id }) => user_id !== ''),
  'erase-events-of-visitors': (call) =>
    eraseEvents(call, visitorVersionsOf(call.parameters), ({ user_id }) => user_id === ''),
  'erase-properties'({ tables, parameters }) {
    const versions = versionsOf(parameters);
    for (const [key, { workspace, kind, id, change }] of tables.properties) {
      const isErased = kind === 'user' && change.version <= (versions.get(userKey(workspace, id)) ?? -1);
      if (isErased) tables.properties.delete(key);
    }
    return {};
  },
  'erase-sightings'({ tables, parameters }) {
    const versions = versionsOf(parameters);
    tables.sightings = tables.sightings.filter(
      ({ workspace, user, version }) => version > (versions.get(userKey(workspace, user)) ?? -1),
    );
    return {};
  },
  'erase-links'({ tables, parameters }) {
    const versions = versionsOf(parameters);
    for (const [key, fact] of tables.links) {
      const isErased = (user: string) => fact.version <= (versions.get(userKey(fact.workspace, user)) ?? -1);
      if (deletableUsersOf(fact).some(isErased)) tables.links.delete(key);
    }
    return {};
  },
  'find-unsettled-deletions'({ tables, parameters }) {
    const { delayMs, deletionsMax, afterVersion, afterWorkspace, afterUser } =
      parameters as unknown as UnsettledParameters;
    const after = { version: afterVersion, workspace_id: afterWorkspace, user_id: afterUser };
    const pending = new Set(tables.pendingDeletions.map(({ workspace, user }) => userKey(workspace, user)));
    const rows = [...tables.identityDeletions.values()]
      .filter(({ workspace, user, settledAtMs }) => settledAtMs === 0 && pending.has(userKey(workspace, user)))
      .filter(({ version }) => Math.floor(version / 1_000) + delayMs <= tables.throughMs)
      .map(({ workspace: workspace_id, user: user_id, version }) => ({ workspace_id, user_id, version }))
      .filter((row) => isBehind(row, after))
      .toSorted((one, other) => (isBehind(one, other) ? 1 : -1));
    return { rows: rows.slice(0, deletionsMax) };
  },
  'find-deleted-visitors'({ tables, parameters }) {
    const [facts, deletions] = [[...tables.links.values()], [...tables.identityDeletions.values()]];
    const rows = userDeletionsIn(parameters).flatMap(({ workspace, user, version }) =>
      deletedWith({ workspace, user, version }, facts, deletions).flatMap((visitor) => {
        const isDeleted = (tables.deletions.get(userKey(workspace, visitor)) ?? 0) >= version;
        const merged = tables.identityDeletions.get([workspace, visitor, version].join('\0'));
        if (isDeleted && (isVisitor(visitor) || (merged?.settledAtMs ?? 0) > 0)) return [];
        const isKnown = isDeleted && merged ? 1 : 0;
        return [{ workspace_id: workspace, user_id: user, version, visitor, isKnown }];
      }),
    );
    return { rows: rows.toSorted((one, other) => (isBehind(one, other) ? 1 : -1)) };
  },
  'settle-deletions'({ tables, parameters, nowMs }) {
    for (const { workspace, user, version } of userDeletionsIn(parameters)) {
      const key = [workspace, user, version].join('\0');
      tables.identityDeletions.set(key, { workspace, user, version, settledAtMs: nowMs });
    }
    return {};
  },
  'find-mixed-users': ({ tables, parameters }) => ({
    rows: [...mixedUsers(tables, versionsOf(parameters)).values()].map((rows) => ({
      ...{ workspace_id: rows[0]?.workspace, user_id: rows[0]?.id },
      newest_version: Math.max(...rows.map(({ version }) => version)),
    })),
  }),
  'store-returned-users'({ tables, parameters }) {
    const versions = versionsOf(parameters);
    for (const [user, rows] of mixedUsers(tables, versions)) {
      const deleted = versions.get(user) ?? 0;
      const times = timesAfter(tables, user, deleted);
      for (const { workspace, id, version } of rows) {
        const standIn = Math.floor(version / 1_000);
        if (times.length === 0) tables.standIns.set(user, [...(tables.standIns.get(user) ?? []), standIn]);
        for (const timeMs of times.length > 0 ? times : [standIn]) {
          see(tables, [workspace, 'user', id, String(deleted)], { timeMs, version });
        }
      }
    }
    return {};
  },
  'erase-entities'({ tables, parameters }) {
    const versions = versionsOf(parameters);
    const replaced = versionsOf({ ...parameters, versions: parameters['replacedVersions'] });
    for (const [key, { workspace, kind, id, otherId, version }] of tables.entities) {
      const user = userKey(workspace, kind === 'member' ? otherId : id);
      const [deleted, upTo] = [versions.get(user) ?? -1, replaced.get(user) ?? -1];
      const isErased = kind === 'user' ? Number(otherId) < deleted && version <= upTo : version <= deleted;
      if (kind !== 'organization' && isErased) tables.entities.delete(key);
    }
    return {};
  },
  'erase-dead-letters'({ tables, parameters }) {
    const versions = versionsOf(parameters);
    for (const [id, deadLetter] of tables.deadLetters) {
      const { workspace_id, user_id, version } = subjectOf(deadLetter);
      if (version <= (versions.get(userKey(workspace_id, user_id)) ?? -1)) tables.deadLetters.delete(id);
    }
    return {};
  },
  'forget-erased'({ tables, parameters }) {
    const versions = versionsOf(parameters);
    tables.pendingDeletions = tables.pendingDeletions.filter(
      ({ workspace, user, version }) => version > (versions.get(userKey(workspace, user)) ?? -1),
    );
    return {};
  },
};

function eraseEvents(
  { tables, parameters }: Call,
  versions: ReadonlyMap<string, number>,
  isErased: (event: StoredEvent) => boolean,
): Result {
  tables.events = tables.events.filter(
    (event) =>
      event.month !== parameters['partition'] ||
      !isErased(event) ||
      event.received_at > (versions.get(personKey(event)) ?? -1),
  );
  return {};
}

/** The list that store-events binds for an event. */
export function storedList({ workspace_id }: StagedEvent, parameters: Call['parameters']) {
  const { fast_workspaces, fast_sets } = parameters as { fast_workspaces: string[]; fast_sets: string[] };
  const names = (column: number) => parameters[`fast_names_${column}`] as string[] | undefined;
  return boundList(workspace_id, { workspaces: fast_workspaces, sets: fast_sets }, names);
}

/** The list that the statements which fill columns bind for an event. */
function filledList({ workspace_id }: StagedEvent, parameters: Call['parameters']) {
  const names = (column: number) => parameters[`names_${column}`] as string[] | undefined;
  return boundList(workspace_id, parameters as { workspaces: string[]; sets: string[] }, names);
}

function isUnfilled(parameters: Call['parameters']): (event: StoredEvent) => boolean {
  return (event) => {
    const list = filledList(event, parameters);
    return list !== undefined && list.set !== listOf(event.fast);
  };
}

/** Refuses an insert of an epoch that is not the newest one. */
export function requireNewestEpoch(tables: Tables, parameters: Readonly<Record<string, unknown>>): void {
  const newest = newestEpoch(tables);
  if (newest && isOlder(parameters as unknown as EpochRow, newest)) {
    refuse('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO', 'a newer epoch owns the partitions');
  }
}

function isOlder(one: Omit<EpochRow, 'leaderId'>, other: Omit<EpochRow, 'leaderId'>): boolean {
  const { incarnation, generation } = other;
  return one.incarnation < incarnation || (one.incarnation === incarnation && one.generation < generation);
}

type DeletionOf<Row> = (row: Row) => string;

/** @param deletionOf returns the deletion after which the row of an event's user begins */
function storeSeenInEvents({ tables, session }: Call, deletionOf: DeletionOf<StagedEvent>): Result {
  for (const event of stagedEvents(session)) {
    const { workspace_id, user_id, group_id } = event;
    if (user_id !== '') see(tables, [workspace_id, 'user', user_id, deletionOf(event)], sightingOf(event));
    if (group_id !== '') see(tables, [workspace_id, 'organization', group_id, ''], sightingOf(event));
    if (user_id === '' || group_id === '') continue;
    see(tables, [workspace_id, 'membership', user_id, group_id], sightingOf(event));
    see(tables, [workspace_id, 'member', group_id, user_id], sightingOf(event));
  }
  return {};
}

/** @param deletionOf returns the deletion after which the row of a change's user begins */
function storeSeenInChanges({ tables, session }: Call, deletionOf: DeletionOf<ChangeRow>): Result {
  for (const change of stagedChanges(session)) {
    const { kind, operation, workspace_id, id, version, group_id = '' } = change;
    if (operation !== 'seen') continue;
    const sighting = { timeMs: Math.floor(version / 1_000), version };
    see(tables, [workspace_id, kind, id, kind === 'user' ? deletionOf(change) : ''], sighting);
    if (kind !== 'user' || group_id === '') continue;
    see(tables, [workspace_id, 'membership', id, group_id], sighting);
    see(tables, [workspace_id, 'member', group_id, id], sighting);
  }
  return {};
}

/** Returns the last deletion of a user if it is below a version; empty otherwise. */
function deletionBefore(tables: Tables, workspace: string, user: string, version: number): string {
  const deleted = tables.deletions.get(userKey(workspace, user)) ?? 0;
  return deleted > 0 && version > deleted ? String(deleted) : '';
}

/** Returns the rows of users that begin before their deletion and go on after it, by user. */
function mixedUsers(tables: Tables, versions: ReadonlyMap<string, number>): Map<string, EntityRow[]> {
  const isMixed = ({ workspace, kind, id, otherId, version }: EntityRow) => {
    const deleted = versions.get(userKey(workspace, id)) ?? 0;
    return kind === 'user' && Number(otherId) < deleted && version > deleted;
  };
  return Map.groupBy([...tables.entities.values()].filter(isMixed), ({ workspace, id }) => userKey(workspace, id));
}

/** @throws a refusal when the session has no such table */
export function stagedEvents({ events }: Session): StagedEvent[] {
  return events ?? refuse('UNKNOWN_TABLE');
}

/** @throws a refusal when the session has no such table */
function stagedChanges({ changes }: Session): ChangeRow[] {
  return changes ?? refuse('UNKNOWN_TABLE');
}

function originalsOf({ originals }: Session): StoredEvent[] {
  return originals ?? refuse('UNKNOWN_TABLE');
}

/** Returns the partition of the table `events`: a month, or a year for what arrived more than 90 days late. */
export function monthOf({ timestamp, received_at }: Pick<EventRow, 'timestamp' | 'received_at'>): string {
  const isLate = Math.floor(received_at / 1_000 / DAY_MS) - Math.floor(timestamp / DAY_MS) > 90;
  const [year = '', month = ''] = new Date(timestamp).toISOString().split('-');
  return isLate ? year : `${year}${month}`;
}

/** Returns the version of the last deletion of any of these users, in whichever workspace. */
function lastDeletionOf(tables: Tables, users: ReadonlySet<string>): number {
  const found = [...tables.deletions].filter(([user]) => users.has(user.split('\0')[1] ?? ''));
  return Math.max(0, ...found.map(([, version]) => version));
}

/** Whose event it is, as deletions name users and visitors. */
function personOfEvent({ user_id, anonymous_id = '' }: StagedEvent): string {
  return user_id || visitorOf(anonymous_id);
}

/** As ClickHouse's min: 0 of nothing. */
function smallest(numbers: readonly number[]): number {
  return numbers.length === 0 ? 0 : Math.min(...numbers);
}

function sightingOf({ timestamp, received_at }: StagedEvent): Sighting {
  return { timeMs: timestamp, version: received_at };
}

/** Returns whose row a dead letter is, as its table finds it: from the fields of a row that is JSON, else from its text. */
export function subjectOf({ kind, format, row }: Pick<DeadLetterRow, 'kind' | 'format' | 'row'>) {
  const json = parsed(row);
  const fields = (json ?? {}) as Readonly<Record<string, unknown>>;
  const ofText = (pattern: RegExp) => (json === undefined ? pattern.exec(row)?.[1] : undefined);
  const text = (name: string) => String(fields[name] ?? parsed(ofText(new RegExp(`"${name}":(${STRING})`)) ?? '""'));
  const isOfEvent = kind === 'events' || kind === 'rejected';
  const saysUser = json === undefined ? row.includes('"kind":"user"') : fields['kind'] === 'user';
  const ofEvent = text('user_id') || (text('anonymous_id') && visitorOf(text('anonymous_id')));
  const user = isOfEvent ? ofEvent : kind === 'changes' && saysUser ? text('id') : '';
  return {
    workspace_id: text('workspace_id'),
    user_id: format === '1' && !row.trimEnd().includes('\n') ? user : '',
    version: Number(fields[isOfEvent ? 'received_at' : 'version'] ?? ofText(/"(?:received_at|version)":(\d+)/) ?? 0),
  };
}

function newestEpoch(tables: Tables): Tables['epochs'][number] | undefined {
  return tables.epochs.toSorted((a, b) => b.incarnation - a.incarnation || b.generation - a.generation)[0];
}

function withDefaults(row: EventRow): StagedEvent {
  return { ...row, user_id: row.user_id ?? '', group_id: row.group_id ?? '' };
}

function violatedByEvent({ workspace_id, event, received_at, timestamp }: EventRow): string {
  if (workspace_id === '' || event === '' || received_at <= YEAR_2000_MS * 1_000) return 'complete';
  return timestamp >= YEAR_2000_MS && timestamp < YEAR_2100_MS ? '' : 'timestamp_in_range';
}

function violatedByChange({ workspace_id, id, version, kind, operation }: ChangeRow): string {
  if (workspace_id === '' || id === '' || version <= 0) return 'complete';
  if (!['user', 'organization', 'visitor'].includes(kind)) return 'known_kind';
  return ['seen', 'set', 'set_once', 'remove', 'delete', 'link', 'say'].includes(operation) ? '' : 'known_operation';
}

function loadNumberedEvents(session: Session, lines: readonly string[]): Result {
  const rows = parseRows<EventRow & { line: number }>(lines, EVENT_COLUMNS);
  session.numbered?.push(...rows.map((row) => ({ line: row.line, violated: violatedByEvent(withDefaults(row)) })));
  return { written: rows.length };
}

function loadNumberedChanges(session: Session, lines: readonly string[]): Result {
  const rows = parseRows<ChangeRow & { line: number }>(lines, CHANGE_COLUMNS);
  session.numbered?.push(...rows.map((row) => ({ line: row.line, violated: violatedByChange(row) })));
  return { written: rows.length };
}

/** @throws a refusal of all rows when one of them is not JSON, or has a field that is no column */
function parseRows<Row>(lines: readonly string[], columns: ReadonlySet<string>): Row[] {
  const isRow = (row: unknown) => isRowOf(row, columns);
  const rows = lines.map(parsed);
  if (rows.every(isRow)) return rows as Row[];
  const others = parsed(asList(lines));
  return Array.isArray(others) && others.every(isRow) ? others : refuse('INCORRECT_DATA');
}

/**
 * Besides a row on each line, ClickHouse takes brackets around all rows, a semicolon behind them, and several on a line.
 *
 * @returns JSON, if it does
 */
function asList(lines: readonly string[]): string {
  const text = lines.join('\n').replace(/;$/, '');
  return (text.startsWith('[') ? text : `[${text}]`).replaceAll(/\}\s*\{/g, '},{');
}

function parseable(lines: readonly string[], columns: ReadonlySet<string>): string[] {
  return lines.filter((line) => isRowOf(parsed(line), columns));
}

function isRowOf(row: unknown, columns: ReadonlySet<string>): boolean {
  const isObject = typeof row === 'object' && row !== null && !Array.isArray(row);
  return isObject && Object.keys(row).every((name) => columns.has(name));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isDeletedEvent({ deletions }: Session, event: StagedEvent): boolean {
  if (!deletions) return refuse('UNKNOWN_TABLE');
  return event.received_at <= (deletions.get(personKey(event)) ?? 0);
}

function isDeletedChange({ deletions }: Session, { kind, operation, workspace_id, id, version }: ChangeRow): boolean {
  if (!deletions) return refuse('UNKNOWN_TABLE');
  const isOfUser = kind === 'user' && operation !== 'delete';
  return isOfUser && version <= (deletions.get(userKey(workspace_id, id)) ?? 0);
}

function deletionsOf(session: Session): ChangeRow[] {
  return stagedChanges(session).filter(({ kind, operation }) => kind === 'user' && operation === 'delete');
}

function storeProperties({ tables, session }: Call): Result {
  for (const change of stagedChanges(session)) {
    const { workspace_id: workspace, kind, id, property = '' } = change;
    for (const onceWeek of onceWeeksOf(change)) {
      const key = [workspace, kind, id, property, onceWeek].join('\0');
      storeProperty(tables, key, { workspace, kind, id, onceWeek, change });
    }
  }
  return {};
}

/** Stores the row of a property, unless the one that is there counts. */
export function storeProperty({ properties }: Tables, key: string, row: PropertyRow): void {
  const { onceWeek, change } = row;
  const stored = properties.get(key)?.change;
  // The first that was set once is the one with the lowest version.
  const isWinner =
    !stored ||
    (onceWeek === 1 && change.version !== stored.version ? change.version < stored.version : isLater(change, stored));
  if (isWinner) properties.set(key, row);
}

function onceWeeksOf({ operation, kind, version }: ChangeRow): readonly number[] {
  if (operation === 'set' || operation === 'remove') return [0];
  if (operation !== 'set_once') return [];
  return kind === 'user' ? [1, Math.floor(version / WEEK_US)] : [1];
}

/** As the maximum of the registers: between equal versions the UUID decides, whose second half ClickHouse compares first. */
function isLater(one: ChangeRow, other: ChangeRow): boolean {
  const keyOf = ({ change_id, operation, value = '' }: ChangeRow) =>
    `${change_id.slice(19)} ${change_id.slice(0, 18)} ${operation === 'remove' ? 2 : 1} ${value}`;
  return one.version > other.version || (one.version === other.version && keyOf(one) > keyOf(other));
}

function submittedAt(place: number, event: EventRow): Submitted {
  const { workspace_id, uuid, timestamp: time_ms, stamped = 0 } = event;
  return { place, workspace_id, uuid, time_ms, timed_by_receipt: isTimedByReceipt(event) ? 1 : 0, stamped };
}

function isTimedByReceipt({ timestamp, received_at }: Pick<EventRow, 'timestamp' | 'received_at'>): boolean {
  return timestamp === Math.floor(received_at / 1_000);
}

function identityOf({ workspace_id, uuid }: Pick<EventRow, 'workspace_id' | 'uuid'>): string {
  return `${workspace_id}\0${uuid}`;
}

function versionsOf(parameters: Readonly<Record<string, unknown>>): ReadonlyMap<string, number> {
  const { workspaces, users, versions } = parameters as Record<string, never[]>;
  return new Map(
    (workspaces ?? []).map((workspace, index) => [userKey(workspace, users?.[index] ?? ''), Number(versions?.[index])]),
  );
}

function userDeletionsIn(parameters: Readonly<Record<string, unknown>>): DeletionOfUser[] {
  const { workspaces, users, versions } = parameters as Readonly<Record<string, readonly never[]>>;
  return (workspaces ?? []).map((workspace, index) => ({
    ...{ workspace, user: users?.[index] ?? '', version: Number(versions?.[index]) },
  }));
}

interface OrderedDeletion {
  readonly version: number;
  readonly workspace_id: string;
  readonly user_id: string;
  readonly visitor?: string;
}

/** Whether a deletion comes behind another one, by their versions and then by whom they name. */
function isBehind(one: OrderedDeletion, other: OrderedDeletion): boolean {
  const textOf = (row: OrderedDeletion) => [row.workspace_id, row.user_id, row.visitor ?? ''].join('\0');
  return one.version > other.version || (one.version === other.version && textOf(one) > textOf(other));
}

function visitorVersionsOf(parameters: Readonly<Record<string, unknown>>): ReadonlyMap<string, number> {
  const visitors = parameters['visitors'] as string[];
  return versionsOf({ ...parameters, users: visitors.map(visitorOf) });
}
