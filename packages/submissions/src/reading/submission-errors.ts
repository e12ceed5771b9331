import { ERRORS_MAX, invalidRequest, type Problem } from '@sluice/shared/http/problem';
import type { z } from 'zod';
import { partsTooLarge } from './body-problems.ts';

/** Collects the errors of a body. It counts all of them and keeps at most {@link ERRORS_MAX}. */
export class SubmissionErrors {
  #count = 0;
  #kept = 0;
  readonly #issues: z.core.$ZodIssue[] = [];
  readonly #tooLarge: string[] = [];

  get count(): number {
    return this.#count;
  }

  add(issue: z.core.$ZodIssue): void {
    const errors = issue.code === 'unrecognized_keys' ? issue.keys.length : 1;
    const room = ERRORS_MAX - this.#kept;
    this.#count += errors;
    this.#kept += errors;
    if (room <= 0) return;
    this.#issues.push(issue.code === 'unrecognized_keys' ? { ...issue, keys: issue.keys.slice(0, room) } : issue);
  }

  addAt(path: readonly PropertyKey[], code: 'custom' | 'too_big', message: string): void {
    this.add({ code, path: [...path], message, input: undefined } as z.core.$ZodIssue);
  }

  addUnknownField(name: string): void {
    this.add({ code: 'unrecognized_keys', keys: [name], path: [], message: 'is not known' });
  }

  /** Adds an event or a property that is too large. Such parts are named only when there is no other error. */
  addTooLarge(path: string): void {
    this.#tooLarge.push(path);
  }

  /** Returns what the schema makes of the value; `undefined` when it finds errors, which are added. */
  check<Schema extends z.ZodType>(
    schema: Schema,
    value: unknown,
    path: readonly PropertyKey[],
  ): z.output<Schema> | undefined {
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    for (const issue of result.error.issues) this.add({ ...issue, path: [...path, ...issue.path] });
    return undefined;
  }

  /** The `invalid_request` that names the errors. */
  problem(): Problem {
    return invalidRequest(this.#issues, this.#count);
  }

  /** @throws {Problem} `invalid_request`, or `body_too_large` when nothing else is wrong */
  throwIfAny(eventBytesMax: number): void {
    if (this.#count > 0) throw this.problem();
    if (this.#tooLarge.length > 0)
      throw partsTooLarge(this.#tooLarge, `must be at most ${eventBytesMax} bytes as JSON`);
  }
}
