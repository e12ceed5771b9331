import { sleep } from '@sluice/shared/base/retry';
import { unlessAborted } from '@sluice/shared/base/unless-aborted';
import { printable } from '@sluice/shared/text/printable';

/** How long a check may take, in milliseconds. */
const CHECK_MS_MAX = 20_000;

/** How long the command waits at its end for checks to remove what they have made, in milliseconds. */
const CLEANUP_MS_MAX = 10_000;

/**
 * What a check has found: `ok`; `note`, which is worth knowing and breaks nothing; `wrong`, with which Sluice does not work or
 * keeps less than the documents promise.
 */
export interface Finding {
  readonly state: 'ok' | 'note' | 'wrong';
  readonly found: string;
  /** What the operator does about it. */
  readonly todo?: string;
}

/** Something that Sluice relies on. */
export interface Check {
  /** Where it belongs, and what it is: `kafka.replicas`. */
  readonly name: string;
  /** Why it matters, in a sentence. */
  readonly why: string;
  /** The checks that have to be right before this one can say anything. Default none. */
  readonly needs?: readonly string[];
  /** Tries it. What it makes it removes itself, also when the signal aborts. @throws what it cannot explain */
  run(signal: AbortSignal): Promise<Finding>;
}

export interface Result extends Omit<Finding, 'state'> {
  readonly name: string;
  readonly why: string;
  /** `skipped`: it could not be tried, because of another one. */
  readonly state: Finding['state'] | 'skipped';
}

export interface RunOptions {
  /** Ends the run: what has not been tried by then is skipped. */
  readonly signal: AbortSignal;
  /** What no result may show. */
  readonly secrets: readonly string[];
  readonly onResult: (result: Result) => void;
  /** Default {@link CHECK_MS_MAX}. */
  readonly checkMsMax?: number;
}

export const ok = (found: string): Finding => ({ state: 'ok', found });
export const note = (found: string, todo: string): Finding => ({ state: 'note', found, todo });
export const wrong = (found: string, todo: string): Finding => ({ state: 'wrong', found, todo });

/** Runs the checks one after the other. None of them makes it throw or hang. */
export async function runChecks(checks: readonly Check[], options: RunOptions): Promise<readonly Result[]> {
  const results = new Map<string, Result>();
  const running: Promise<unknown>[] = [];
  for (const check of checks) {
    const { state, ...finding } = await tryOne(check, results, running, options);
    const { name, why } = check;
    const clean = (text: string) => printable(withoutSecrets(text, options.secrets));
    const { found, todo } = finding;
    const result = { name, state, why, found: clean(found), ...(todo !== undefined && { todo: clean(todo) }) };
    results.set(name, result);
    options.onResult(result);
  }
  // A check whose time was over may still have to remove what it has made.
  await Promise.race([Promise.allSettled(running), sleep(CLEANUP_MS_MAX)]);
  return [...results.values()];
}

async function tryOne(
  { needs = [], run }: Check,
  results: ReadonlyMap<string, Result>,
  running: Promise<unknown>[],
  { signal, checkMsMax = CHECK_MS_MAX }: RunOptions,
): Promise<Omit<Result, 'name' | 'why'>> {
  if (signal.aborted) return { state: 'skipped', found: 'not tried: interrupted' };
  const missing = needs.find((need) => ['wrong', 'skipped', undefined].includes(results.get(need)?.state));
  if (missing !== undefined) return { state: 'skipped', found: `not tried: ${missing} comes first` };
  const limit = AbortSignal.timeout(checkMsMax);
  const both = AbortSignal.any([signal, limit]);
  try {
    const work = run(both);
    running.push(work);
    const finding = await unlessAborted(both, work);
    // One that was broken off has not found what it says.
    both.throwIfAborted();
    return finding;
  } catch (error) {
    if (signal.aborted) return { state: 'skipped', found: 'not tried to its end: interrupted' };
    if (limit.aborted)
      return wrong(`no answer within ${checkMsMax / 1_000} s`, 'See whether it runs, and how busy it is.');
    return wrong(reasonOf(error), 'See the message; doctor does not know this error.');
  }
}

/** Returns what an error says, in one line. */
export function reasonOf(error: unknown): string {
  const { message, code, errors } = error as NodeJS.ErrnoException & { readonly errors?: readonly Error[] };
  // An attempt at several addresses has a message for each.
  const text = message || errors?.map((one) => one.message).join('; ') || code || String(error);
  return text.replaceAll(/\s+/g, ' ').replace(/\.$/, '').slice(0, 300);
}

/** Shorter ones, such as the password `sluice` of the compose file, would be found in names. */
const SECRET_CHARACTERS_MIN = 8;

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= SECRET_CHARACTERS_MIN)
    .reduce((shown, secret) => shown.replaceAll(secret, '(secret)'), text);
}
