import { type Tables, userKey } from '../clickhouse/tables.ts';

/** Up to which version the deletions of each user or visitor were forgotten, because nothing was left of them. */
export class ForgottenDeletions {
  readonly #versions = new Map<string, number>();

  /** Notes the deletions that are pending no more. */
  note(before: Tables['pendingDeletions'], after: Tables['pendingDeletions']): void {
    const left = new Set(after);
    for (const { workspace, user, version } of before.filter((one) => !left.has(one))) {
      const person = userKey(workspace, user);
      this.#versions.set(person, Math.max(version, this.upTo(person)));
    }
  }

  /** Returns up to which version the deletion of a user or visitor was forgotten; 0: it was not. */
  upTo(person: string): number {
    return this.#versions.get(person) ?? 0;
  }
}
