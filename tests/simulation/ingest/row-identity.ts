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
    const time = stamped ? 'stamped' : timestamp;
    return ['event', workspace_id, event, properties?.['key'], user_id, group_id, time].join('\0');
  }
  const { workspace_id, kind: entity, id, operation, property = '', value = '', group_id = '' } = row as ChangeRow;
  return [operation, workspace_id, entity, id, property, value, group_id].join('\0');
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
        yield ['event', workspace, 'load', key, action.user, action.group, timestamp ?? 'stamped'].join('\0');
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
      yield ['event', workspace, '$set', uuid, user, '', 'stamped'].join('\0');
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
