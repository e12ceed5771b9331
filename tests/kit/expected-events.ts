import type { Tally } from './load.ts';
import { timestampsOf } from './verify-entities.ts';

/** What is to become of an event. */
export interface ExpectedEvent {
  /** For whom it was sent last as a new event. */
  readonly user: string;
  /** For whom it was sent. */
  readonly users: ReadonlySet<string>;
  readonly group: string;
  /** As it was sent, or answered. */
  readonly uuid: string | undefined;
  /** Its timestamp lies between these, in milliseconds since 1970; they are equal when it brought its own. */
  readonly from: number;
  readonly to: number;
  readonly acknowledged: boolean;
  /** It has to be visible. */
  readonly must: boolean;
  /** It can be visible. */
  readonly may: boolean;
  /** An attempt that was not heard of may still arrive, even after a later deletion. */
  readonly late: boolean;
  /** Its user was deleted at some time, so a hidden row of it may be there besides the visible one. */
  readonly deleted: boolean;
  /** Its user was certainly deleted, and it was not sent again since: what is sent for another user is new. */
  readonly gone: boolean;
  /** An attempt of a deletion of its user was not heard of. */
  readonly unclear: boolean;
  /** It was sent for several users, and it is not known whether the later one was new: any of them may have it. */
  readonly shared: boolean;
}

const NEVER_SENT: ExpectedEvent = {
  user: '',
  users: new Set(),
  group: '',
  uuid: undefined,
  from: Infinity,
  to: -Infinity,
  acknowledged: false,
  must: false,
  may: false,
  late: false,
  deleted: false,
  gone: false,
  unclear: false,
  shared: false,
};

/**
 * Returns what is to become of each event, by its key. Operations of one user are in the order in which they were done.
 *
 * @param cutOff the keys of events that Kafka has lost before they were stored
 */
export function expectedEvents(
  { operations, accepted }: Pick<Tally, 'operations' | 'accepted'>,
  cutOff: ReadonlySet<string>,
): Map<string, ExpectedEvent> {
  const expected = new Map<string, ExpectedEvent>();
  const keysOfUsers = new Map<string, Set<string>>();
  const uncertainUsers = new Set<string>();
  const update = (key: string, change: (before: ExpectedEvent) => Partial<ExpectedEvent>) => {
    const before = expected.get(key) ?? NEVER_SENT;
    const after = { ...before, ...change(before) };
    expected.set(key, after.shared ? { ...after, must: false, may: true } : after);
  };

  for (const operation of operations) {
    const { action, outcome, clear } = operation;
    if (action.kind === 'set' || action.kind === 'set-once' || action.kind === 'join') continue;
    const isAccepted = outcome === 'accepted';
    const keys = keysOfUsers.get(action.user) ?? new Set();
    keysOfUsers.set(action.user, keys);
    if (action.kind === 'events') {
      for (const event of action.events) {
        const { key, uuid } = event;
        const { from, to } = timestampsOf(event, action.firstAt, operation);
        keys.add(key);
        const before = expected.get(key);
        if (before && before.user !== action.user) {
          // Where Kafka lost the first one, the later one is new.
          const isKnown = clear && !before.late && !before.unclear && !before.shared && !cutOff.has(key);
          update(key, ({ users }) => ({ users: new Set([...users, action.user]), shared: !isKnown }));
          if (isKnown && !before.gone) continue;
        }
        update(key, (before) => ({
          user: action.user,
          users: new Set([...before.users, action.user]),
          gone: false,
          group: action.group,
          uuid: uuid ?? accepted.get(key),
          from: Math.min(before.from, from),
          to: Math.max(before.to, to),
          acknowledged: before.acknowledged || isAccepted,
          must: (before.must || isAccepted) && !cutOff.has(key),
          may: true,
          late: before.late || !clear,
        }));
      }
      continue;
    }
    // An attempt that was not heard of may also delete what is sent after it.
    if (!clear) uncertainUsers.add(action.user);
    for (const key of keys) {
      if (expected.get(key)?.user !== action.user) continue;
      update(key, (before) => ({
        must: false,
        may: before.late || (before.may && !isAccepted),
        deleted: true,
        gone: clear && isAccepted,
        unclear: before.unclear || !clear,
        // Where the deletion was stored first, because a partition was behind, what was sent for another user is new.
        shared: before.users.size > 1,
      }));
    }
  }
  for (const user of uncertainUsers) {
    // It may be stored before them, as above, or never.
    for (const key of keysOfUsers.get(user) ?? [])
      update(key, ({ shared, users }) => ({ must: false, deleted: true, shared: shared || users.size > 1 }));
  }
  return expected;
}
