import type { ChangeRow, EventRow, MessageKind } from '@sluice/shared/rows';
import { parseRejectedCall } from '@sluice/submissions/calls/rejected-call';
import type { Action } from '../../kit/load.ts';
import type { LogRecord } from '../kafka/partition-log.ts';
import type { Submission } from './submission.ts';

/** A row as Kafka has it. */
export interface SentLine {
  readonly kind: MessageKind;
  /** Its JSON. */
  readonly line: string;
  readonly row: EventRow | ChangeRow;
}

export function linesOf({ headers, value }: LogRecord): SentLine[] {
  const kind = String(headers['kind']) as MessageKind;
  const lines = value.toString().split('\n').slice(0, -1);
  return lines.map((line) => ({ kind, line, row: JSON.parse(line) as EventRow | ChangeRow }));
}

/** Returns what a row says, without its uuid, time of receipt and version. */
export function identityOfLine({ kind, line, row }: SentLine): string {
  if (kind === 'rejected')
    return identityOfRejected(row.workspace_id, parseRejectedCall(Buffer.from(line))?.call ?? '');
  if (kind === 'events') {
    const { workspace_id, user_id = '', group_id = '', timestamp, stamped, properties, event } = row as EventRow;
    return identityOfEvent(workspace_id, {
      ...{ event, key: String(properties?.['key']), user: user_id, group: group_id },
      time: stamped ? undefined : timestamp,
    });
  }
  const { workspace_id, kind: entity, id, operation, property = '', value = '', group_id = '' } = row as ChangeRow;
  return [operation, workspace_id, entity, id, property, value, group_id].join('\0');
}

interface EventIdentity {
  readonly event: string;
  /** Travels in its properties. */
  readonly key: string;
  readonly user: string;
  readonly group: string;
  /** Undefined: it is stamped. */
  readonly time: number | undefined;
}

export function identityOfEvent(workspace: string, { event, key, user, group, time }: EventIdentity): string {
  return ['event', workspace, event, key, user, group, time ?? 'stamped'].join('\0');
}

export function identityOfRejected(workspace: string, call: string): string {
  const { messageId } = JSON.parse(call) as { messageId: string };
  return ['rejected', workspace, messageId].join('\0');
}

/** Returns the identities of the rows that Kafka has to have when a submission is accepted. */
export function identitiesOf({ workspace, actions, rejected }: Submission): string[] {
  const ofActions = actions.flatMap((action) => [...ofAction(action, workspace)]);
  const hasEvents = actions.some((action) => action.kind === 'events');
  const rows = ofActions.filter((identity) => !(hasEvents && identity.startsWith('seen')));
  return [...rows, ...[...rejected.values()].map((name) => ['rejected', workspace, name].join('\0'))];
}

function* ofAction(action: Action, workspace: string): Generator<string> {
  const change = (operation: string, entity: string, id: string, property = '', value = '', group = '') =>
    [operation, workspace, entity, id, property, value, group].join('\0');
  switch (action.kind) {
    case 'events':
      for (const { key, timestamp } of action.events) {
        const { user, group } = action;
        yield identityOfEvent(workspace, { event: 'load', key, user, group, time: timestamp });
      }
      return;
    case 'set': {
      const { entity, id, property, value } = action;
      yield change('seen', entity, id);
      yield value === null
        ? change('remove', entity, id, property)
        : change('set', entity, id, property, String(value));
      return;
    }
    case 'set-once': {
      const { user, property, value, uuid } = action;
      yield identityOfEvent(workspace, { event: '$set', key: uuid, user, group: '', time: undefined });
      yield change('set_once', 'user', user, property, String(value));
      return;
    }
    case 'join':
      yield change('seen', 'user', action.user, '', '', action.group);
      yield change('seen', 'organization', action.group);
      return;
    case 'delete':
      yield change('delete', 'user', action.user);
  }
}
