import type { ChangeRow, EntityKind } from '@sluice/shared/rows';
import { entityHash } from '@sluice/shared/rows/row-hashes';
import type { SubmittedProperty } from '../reading/submission.ts';
import type { Acceptance } from './acceptance.ts';
import type { OutgoingRow } from './partition-rows.ts';

/** @param changeId identifies the change; see {@link ChangeRow} */
export function changeRow(
  kind: EntityKind,
  id: string,
  { workspace, version }: Acceptance,
  operation: ChangeRow['operation'],
  changeId: string,
): ChangeRow {
  return { workspace_id: workspace, kind, id, operation, version, change_id: changeId };
}

/** The row that sets a property of a user or an organization, or removes it. */
export function propertyRow(
  kind: EntityKind,
  id: string,
  { name: property, json, once }: SubmittedProperty,
  acceptance: Acceptance,
  changeId: string,
): ChangeRow {
  return json === undefined
    ? { ...changeRow(kind, id, acceptance, 'remove', changeId), property }
    : { ...changeRow(kind, id, acceptance, once ? 'set_once' : 'set', changeId), property, value: json };
}

export function outgoingChange(row: ChangeRow): OutgoingRow {
  const hash = entityHash(row.workspace_id, row.kind, row.id);
  return { topic: 'entities', kind: 'changes', hash, line: JSON.stringify(row) };
}
